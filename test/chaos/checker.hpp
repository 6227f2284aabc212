// Whether a history keeps what lease promises. Pure: no server, no clock.
#ifndef LEASE_CHAOS_CHECKER_HPP
#define LEASE_CHAOS_CHECKER_HPP

#include "history.hpp"

#include <map>
#include <string>
#include <vector>

namespace chaos {

enum class Promise {
    one_holder,         // none begins before the one before it has ended, none lives on beside it
    expired_is_lost,    // what has run out or was released is not live again
    holder_is_told_so,  // who holds it is not told the contrary
    kept_free,          // nobody gets it while it is kept from everybody after a release
    tokens_rise,        // from tenure to tenure
    fence_holds,        // who passed it commits before the next tenure begins
    own_token,          // who writes has been granted that token
    writes_in_order,    // tokens of writes never go down
    no_lost_update,     // who writes has read what earlier tenures wrote
    nothing_lost,       // what was acknowledged is there, once; what was rolled back is not
    losing_is_free,     // a losing try leaves no lock and no transaction ID
    progress,           // when nothing goes wrong any more, every lease is granted again
    prompt,             // what is released goes to who waits at once
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

} // namespace chaos

#endif
