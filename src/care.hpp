// One round of the keeper: what is due is renewed, what is orphaned is released.
// Invariant: nothing is waited for, and an error on one row holds up no other.
#ifndef LEASE_CARE_HPP
#define LEASE_CARE_HPP

#include "dist_lock.hpp"

namespace lease {

struct Round {
    bool anything_bound;
    Usec next; // when the next round is due, if anything is bound
};

// Does a round on this table of the function's extension, in transactions of its own. Rows that
// somebody is busy on are left for the next round, soon, and so is the table if it is locked; one
// that fails, for later and later (failures.hpp). Errors: of the table as a whole; those of one row
// are logged.
Round care_round(Oid relation, Oid function);

// Whether some lease is bound, or that cannot be seen now. In the current transaction.
bool anything_bound(Oid relation, Oid function);

} // namespace lease

#endif
