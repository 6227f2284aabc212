// What a run is to be like. Everything random in it comes from the seed.
#ifndef LEASE_CHAOS_PLAN_HPP
#define LEASE_CHAOS_PLAN_HPP

#include "moments.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <string>

namespace chaos {

// What clients do while things go wrong.
enum class Habit {
    everything,
    duel,  // they take a lease in a block, or write with what they once had
    renew, // who got a lease renews it, again and again
};

struct Plan {
    std::uint64_t seed = 1;
    int clients = 8;
    int leases = 5;
    bool fenced = true; // false: nobody calls lease_fence, and the tables have no trigger
    Usec calm = 4 * second;
    Usec chaos = 45 * second;
    Usec healing = 20 * second; // that every lease is granted again within; 0: nobody looks
    Usec shortest_ttl = 30 * millisecond;
    Usec longest_ttl = 400 * millisecond;
    std::set<std::string> nemeses;   // by their names
    int haste = 1;                   // how much faster than usually they strike
    int watchers = 0;                // clients that only watch, each time over a new connection
    Habit habit = Habit::everything; // of the other clients
};

// A stream of numbers of its own for each part of a run.
class Dice {
public:
    Dice(std::uint64_t seed, std::uint64_t part) : engine_(seed * 1000003 + part) {}

    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool one_in(int count) { return between(1, count) == 1; }
    template <typename Container> const auto &one_of(const Container &things) {
        return *(std::begin(things) + between(0, std::size(things) - 1));
    }

private:
    std::mt19937_64 engine_;
};

} // namespace chaos

#endif
