// Deleting the rows of leases that nobody uses any more.
// Invariant: a row is deleted only while it is takeable and locked by us.
#ifndef LEASE_PURGE_HPP
#define LEASE_PURGE_HPP

#include "dist_lock.hpp"

namespace lease {

// Deletes the rows that were takeable for at least `idle`; skips those that another
// session is busy on. Returns how many. Errors: what triggers and foreign keys raise.
std::int64_t purge_leases(Table &table, Usec idle);

} // namespace lease

#endif
