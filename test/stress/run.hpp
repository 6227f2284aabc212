// One run: clients, the nemesis, and the history of both.
#ifndef LEASE_STRESS_RUN_HPP
#define LEASE_STRESS_RUN_HPP

#include "history.hpp"
#include "plan.hpp"

namespace stress {

struct Run {
    History history;
    int takeovers = 0; // of leases that had expired, as the server counts them
    int stopped_outside = 0;
    int stopped_inside = 0;
    int retries = 0;
    Milliseconds length{0};
};

// Runs it to its end. Throws std::runtime_error if there is no server.
Run run(const Plan &plan);

} // namespace stress

#endif
