// The ends of a tenure that somebody wants: release and break.
// Invariant: both wait for the fences of the tenure, behind which its work may
// still commit, and hold the gate until they commit themselves.
#ifndef LEASE_ENDING_HPP
#define LEASE_ENDING_HPP

#include "operation.hpp"

namespace lease {

// Ends the tenure of the claimant; nobody gets the lease before `keep` after it began.
// Errors: 22008 if no timestamp can name that; 55P03, 40P01, 57014 while waiting.
Answer release_lease(Table &table, std::string_view name, const Claim &claim,
                     std::optional<Usec> keep);

// Ends whoever's tenure, or a cooling time. False: there was nothing to end.
// Says for whom it waits. Errors: 55P03, 40P01, 57014 while waiting.
bool break_lease(Table &table, std::string_view name);

} // namespace lease

#endif
