// Whether the fenced writes of one lease are what they should be.
#ifndef LEASE_STRESS_WRITES_HPP
#define LEASE_STRESS_WRITES_HPP

#include "checker.hpp"
#include "tenures.hpp"

namespace stress {

void check_writes(const History &history, const Fates &fates, int lease,
                  std::vector<Violation> &found);

} // namespace stress

#endif
