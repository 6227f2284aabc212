// What a run is to be like. Everything random in it comes from the seed.
#ifndef LEASE_STRESS_PLAN_HPP
#define LEASE_STRESS_PLAN_HPP

#include <chrono>
#include <cstdint>
#include <random>

namespace stress {

using Milliseconds = std::chrono::milliseconds;

struct Plan {
    std::uint64_t seed = 1;
    int clients = 8;
    bool fenced = true; // false: nobody calls lease_fence, and the table has no trigger
    Milliseconds ttl{60};
    // It ends when all of these have happened, or the time is up.
    int takeovers = 50;    // of leases that had expired
    int stale_writes = 20; // that were refused, or came through
    Milliseconds most{180000};
};

// A stream of numbers of its own for each part of a run.
class Dice {
public:
    Dice(std::uint64_t seed, std::uint64_t part) : engine_(seed * 1000003 + part) {}

    int between(int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(engine_);
    }
    bool one_in(int count) { return between(1, count) == 1; }

private:
    std::mt19937_64 engine_;
};

} // namespace stress

#endif
