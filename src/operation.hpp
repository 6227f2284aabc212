// One operation on one lease: look, gate, row, decision, next row.
// Invariants: the answer "no" is given from a look that took no lock; what is
// changed was decided by a clock read after every wait was over; a call that ends
// in "no" keeps nothing.
#ifndef LEASE_OPERATION_HPP
#define LEASE_OPERATION_HPP

#include "dist_lock.hpp"

namespace lease {

// Takes the lease, or extends the tenure that the owner holds. False: not now.
bool try_lease(Table &table, std::string_view name, std::string_view owner, Usec ttl);

// What the owner is to the lease, after a step that wants it to be the holder:
// `holder` if the step was done, else why not, with the row that says so in `look`
// (let it go).
struct Answer {
    Standing standing;
    Look look;
    Usec now;
};

// Extends the tenure. The first waits for whoever is busy on the row.
Answer renew_lease(Table &table, std::string_view name, const Claim &claim, Usec ttl);

// Ends the tenure; nobody gets the lease before `keep` after it began.
Answer release_lease(Table &table, std::string_view name, const Claim &claim,
                     std::optional<Usec> keep);

// Only looks.
Answer look_at_lease(Table &table, std::string_view name, const Claim &claim);

// Whether a try would find the lease free, or the owner's own. Only looks.
enum class Prospect { own, free, busy };
Prospect prospect_of_try(Table &table, std::string_view name, std::string_view owner);

} // namespace lease

#endif
