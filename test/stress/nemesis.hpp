// What goes wrong. This one stops a client that holds the lease for longer than its ttl,
// before a transaction or inside of one, and lets it go on.
// Invariant: nobody stays stopped when it is gone.
#ifndef LEASE_STRESS_NEMESIS_HPP
#define LEASE_STRESS_NEMESIS_HPP

#include "client.hpp"
#include "plan.hpp"

#include <chrono>
#include <map>

namespace stress {

class Nemesis {
public:
    using Clock = std::chrono::steady_clock;

    explicit Nemesis(const Plan &plan) : plan_(plan), dice_(plan.seed, 1000) {}
    ~Nemesis();
    Nemesis(const Nemesis &) = delete;
    Nemesis &operator=(const Nemesis &) = delete;

    // A client has told what it is about to do.
    void see(const Event &event, pid_t client);

    // Lets those go on whose time has come; gives the time until the next.
    Milliseconds act();

    int stopped_outside() const { return outside_; }
    int stopped_inside() const { return inside_; }

private:
    const Plan &plan_;
    Dice dice_;
    std::map<pid_t, Clock::time_point> stopped_; // until then
    int outside_ = 0;
    int inside_ = 0;
};

} // namespace stress

#endif
