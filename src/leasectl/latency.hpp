// Latencies of renewals, in memory that does not grow.
#pragma once

#include "clock.hpp"

#include <array>
#include <cstdint>

namespace leasectl {

class Latency {
public:
    void add(Usec duration);
    std::uint64_t count() const { return count_; }
    Usec percentile(double percent) const; // exact to 5 %; 0 if there are none

private:
    static constexpr int buckets = 512;
    std::array<std::uint64_t, buckets> counts_{};
    std::uint64_t count_ = 0;
};

} // namespace leasectl
