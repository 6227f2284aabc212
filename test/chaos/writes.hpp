// Whether the fenced writes of one lease are what they should be.
#ifndef LEASE_CHAOS_WRITES_HPP
#define LEASE_CHAOS_WRITES_HPP

#include "checker.hpp"
#include "tenures.hpp"

namespace chaos {

void check_writes(const History &history, const Fates &fates, int lease,
                  std::vector<Violation> &found);

} // namespace chaos

#endif
