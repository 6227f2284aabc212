// How fast it was while nothing went wrong.
#ifndef LEASE_CHAOS_MEASURES_HPP
#define LEASE_CHAOS_MEASURES_HPP

#include "checker.hpp"
#include "tenures.hpp"

#include <vector>

namespace chaos {

// How long each lease_try took, in a transaction of its own.
std::vector<Usec> times_of_tries(const History &history);

// From each release to the end of the lease_acquire that waited for it.
std::vector<Usec> hand_overs(const History &history, const Fates &fates);

// How many tenures began, for sure.
std::int64_t count_grants(const History &history, const Fates &fates);

// Of a hundred of these, so many were not longer; 0 if there are none.
Usec percentile(std::vector<Usec> times, int percent);

void check_hand_overs(const History &history, const Fates &fates, std::vector<Violation> &found);

} // namespace chaos

#endif
