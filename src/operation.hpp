// One operation on one lease: look, gate, row, decision, next row.
// Invariants: the answer "no" is given from a look that took no lock; what is
// changed was decided by a clock read after every wait was over; a call that ends
// in "no" keeps nothing.
#ifndef LEASE_OPERATION_HPP
#define LEASE_OPERATION_HPP

#include "dist_lock.hpp"

namespace lease {

// Takes the lease, or extends the tenure that the owner holds; returns its token.
// Nothing: not now, somebody holds it, is busy on it or queues for it.
std::optional<std::int64_t> try_lease(Table &table, std::string_view name, std::string_view owner,
                                      Usec ttl);

// What one attempt came to, and for what to wait if it did not get the lease.
enum class Verdict : std::uint8_t {
    held,       // with this token
    busy,       // until this instant, or (0) until a row is there
    gate_busy,  // takeable, but transactions are open behind its gate
    row_busy,   // takeable, but these transactions have its row
    own_busy,   // the owner holds it until this instant, but these transactions have its row
    look_again, // somebody was faster: no attempt ends with that
};
struct Attempt {
    Verdict verdict;
    std::int64_t token;
    Usec until;
    Lockers lockers;
};

// Whether it is the caller's turn, or has to give way to who queues.
enum class Turn : std::uint8_t { unknown, head };

// Looks, and takes the lease or extends the owner's tenure if that is possible. Waits for nobody
// but who locks the whole table.
Attempt attempt_lease(Table &table, std::string_view name, std::string_view owner, Usec ttl,
                      Turn turn);

// What the owner is to the lease, after a step that wants it to be the holder:
// `holder` if the step was done, else why not, with the row that says so in `look`
// (let it go).
struct Answer {
    Standing standing = Standing::not_held;
    Look look;
    Usec now = 0;
};

// Makes the row of a tenure that `claim` was seen to hold ready to be changed, waiting for whoever
// is busy on it, and says whether it is still held, by a clock read after that. False: look again.
bool lock_held_row(Table &table, Look &look, const Claim &claim, Usec *now);

// Extends the tenure. The first waits for whoever is busy on the row.
Answer renew_lease(Table &table, std::string_view name, const Claim &claim, Usec ttl);

// Only looks.
Answer look_at_lease(Table &table, std::string_view name, const Claim &claim);

// What the claimant is to the lease by this look, its role included.
Standing standing_of(Look &look, const Claim &claim, Usec now);

// Whether a try would find the lease free, or the owner's own. Only looks.
enum class Prospect { own, free, busy };
Prospect prospect_of_try(Table &table, std::string_view name, std::string_view owner);

} // namespace lease

#endif
