// One run: clients, what goes wrong, and the history of all that.
#ifndef LEASE_CHAOS_RUN_HPP
#define LEASE_CHAOS_RUN_HPP

#include "history.hpp"
#include "plan.hpp"

#include <map>
#include <string>

namespace chaos {

struct Run {
    History history;
    std::map<std::string, int> faults; // how often each of them happened
    std::int64_t takeovers = 0;        // of leases that had expired, by the server's log
    Usec longest_pause = 0;            // in which nobody was granted anything
    Usec length = 0;
};

// Runs it to its end. Throws std::runtime_error if there is no server.
Run run(const Plan &plan);

} // namespace chaos

#endif
