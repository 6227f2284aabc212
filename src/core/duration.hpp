// Intervals as a lease reads them: microseconds, or the reason why not.
// Invariant: no answer depends on a calendar or a time zone; a day is 24 hours.
#ifndef LEASE_CORE_DURATION_HPP
#define LEASE_CORE_DURATION_HPP

#include <cstdint>

namespace lease {

// Microseconds: of a length of time, or since some epoch, as the server counts them.
using Usec = std::int64_t;

// The fields of an interval, as the server stores them.
struct IntervalFields {
    std::int32_t months;
    std::int32_t days;
    Usec usec;
};

enum class DurationError : std::uint8_t {
    none,
    infinite, // all fields at the same extreme
    months,   // a month has no fixed length
    negative,
    zero,
    too_long, // does not fit in 64 bits of microseconds
};

struct Duration {
    Usec usec; // meaningful only without an error
    DurationError error;
};

// A time to live: more than zero.
Duration ttl_from(IntervalFields fields) noexcept;

// A minimum time to keep others out: zero or more.
Duration keep_from(IntervalFields fields) noexcept;

// How long to wait, or how long something was idle: zero or more. A month counts
// 30 days; what is too long to count is as long as can be counted.
Duration wait_from(IntervalFields fields) noexcept;

} // namespace lease

#endif
