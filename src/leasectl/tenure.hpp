// What a holder knows of its tenure, and until when it may count on it.
// Invariant: deadline() is never later than the expiry in the database, on clocks that run at the
// same rate: it counts from when the last grant or renewal that succeeded was *sent*.
#pragma once

#include "clock.hpp"
#include "guard.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace leasectl {

struct Tenure {
    std::string name;
    std::string owner;
    std::string token; // decimal
    Usec ttl = 0;
    Usec grace = 0; // from TERM to KILL
    Usec counted_from = 0;

    Usec deadline() const { return counted_from + ttl; }

    // KILL comes that long before the deadline: for a scheduler that is late, clocks that run
    // apart, and what the command has under way.
    Usec margin() const { return std::clamp(ttl / 50, 20 * millisecond, 500 * millisecond); }

    Deadline deadlines() const {
        const Usec kill_at = deadline() - margin();
        return {kill_at - grace, kill_at};
    }

    Usec renew_at() const { return counted_from + ttl / 3; }

    // A request without an answer for so long: the connection is taken for dead.
    Usec patience() const { return ttl / 6; }
};

} // namespace leasectl
