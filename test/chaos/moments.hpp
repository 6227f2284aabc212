// Instants of the machine's clock, which clients and server share, and what the server's own clock
// may have read at them: that one is set forward and back.
#ifndef LEASE_CHAOS_MOMENTS_HPP
#define LEASE_CHAOS_MOMENTS_HPP

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>
#include <vector>

namespace chaos {

using Usec = std::int64_t;
constexpr Usec never = std::numeric_limits<Usec>::max();
constexpr Usec millisecond = 1000;
constexpr Usec second = 1000000;

struct Span {
    Usec from;
    Usec to;

    bool contains(Usec moment) const { return from <= moment && moment <= to; }
    bool overlaps(const Span &other) const { return from <= other.to && other.from <= to; }
};

inline Usec now() {
    timespec time = {};
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * second + time.tv_nsec / 1000;
}

// The server's clock was set to read `offset` more than the machine's, some time between `from`
// and `to`.
struct Shift {
    Usec from;
    Usec to;
    Usec offset;
};

class ServerClock {
public:
    // In the order of time.
    explicit ServerClock(const std::vector<Shift> &shifts) : shifts_(shifts) {}

    // The least and the most that it can have read within a span; at its end `never`, never.
    Usec least(Span span) const {
        Usec least = never;
        each(span,
             [&least](Span part, Usec offset) { least = std::min(least, part.from + offset); });
        return least;
    }
    Usec most(Span span) const {
        if (span.to == never)
            return never;
        Usec most = std::numeric_limits<Usec>::min();
        each(span, [&most](Span part, Usec offset) { most = std::max(most, part.to + offset); });
        return most;
    }

private:
    // The parts of a span in which one offset may have been in force.
    template <typename See> void each(Span span, See see) const {
        for (std::size_t i = 0; i <= shifts_.size(); i++) {
            const Span force{i == 0 ? std::numeric_limits<Usec>::min() : shifts_[i - 1].from,
                             i == shifts_.size() ? never : shifts_[i].to};
            if (force.overlaps(span))
                see(Span{std::max(span.from, force.from), std::min(span.to, force.to)},
                    i == 0 ? 0 : shifts_[i - 1].offset);
        }
    }

    const std::vector<Shift> &shifts_;
};

} // namespace chaos

#endif
