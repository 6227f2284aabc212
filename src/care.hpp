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

// Does a round, in transactions of its own. Rows that somebody is busy on are left for the next
// round, soon. Errors: of the table as a whole; those of one row are logged.
Round care_round(Oid function);

} // namespace lease

#endif
