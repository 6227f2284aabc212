// Whether a history keeps what lease promises. Pure: no server, no clock.
#ifndef LEASE_STRESS_CHECKER_HPP
#define LEASE_STRESS_CHECKER_HPP

#include "history.hpp"

#include <map>
#include <string>
#include <vector>

namespace stress {

enum class Promise {
    tokens_rise,        // in the order of grants, by the server's clock
    one_holder,         // nobody was told to hold it when a later tenure had begun
    own_token,          // who writes has been granted that token
    writes_in_order,    // tokens of writes never go down
    no_late_write,      // none of a tenure commits after the first write of a later one
    no_lost_update,     // who writes has read all earlier writes
    nothing_lost,       // what was acknowledged is there, once
    nothing_surprising, // no error that should not be
};

const char *name_of(Promise promise);

struct Violation {
    Promise promise;
    std::string what;
};

std::vector<Violation> check(const History &history);

// How often each promise was broken.
std::map<Promise, int> count_by_promise(const std::vector<Violation> &violations);

} // namespace stress

#endif
