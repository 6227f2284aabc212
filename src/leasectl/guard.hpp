// The guard: a process of its own that ends the command's group before the lease can end, when
// leasectl cannot: killed, stopped, or stuck.
// Invariant: at the kill time of the last deadline that it was told, at the latest, or soon after
// leasectl went without a farewell, no process of the group is left.
#pragma once

#include "clock.hpp"

#include <sys/types.h>

namespace leasectl {

// When a process group has to end, in boot time. TERM first, KILL later.
struct Deadline {
    Usec term_at;
    Usec kill_at;
};

// TERM, or KILL, to all of a group, also to those that are stopped. False if none is left.
bool signal_group(pid_t group, int signal) noexcept;
bool group_exists(pid_t group) noexcept;

class Guard {
public:
    Guard(pid_t group, Deadline deadline, Usec grace);
    ~Guard(); // the guard ends first, so that it does not take this for a death
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

    void extend(Deadline deadline) const noexcept;
    void
    only_kill(Deadline deadline) const noexcept; // TERM has been sent: KILL alone is the guard's

    bool has_acted() noexcept;                     // it has sent TERM or KILL
    int fd() const { return pid_ > 0 ? fd_ : -1; } // readable when it has acted, or died
    bool is_alive() noexcept;

private:
    int fd_ = -1;
    pid_t pid_ = -1;
    bool acted_ = false;
};

} // namespace leasectl
