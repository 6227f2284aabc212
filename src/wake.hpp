// Waking those who sleep until a lease changes hands: the head of its queue, and
// its watchers.
// Invariant: whoever sleeps holds a lock of the lease that tells which process it
// is, and took it before the look that sent it to sleep. Nothing is polled, nothing
// is kept in shared memory; a wake-up that is lost costs a second, the longest sleep.
#ifndef LEASE_WAKE_HPP
#define LEASE_WAKE_HPP

#include "gate.hpp"

namespace lease {

// Installs the transaction callback; called once, when the library is loaded.
void watch_commits();

// When this transaction commits, the head of the lease's queue and its watchers look again.
void wake_at_commit(const LOCKTAG &gate);

// The same without the head: of a grant, which is its own, or was made while nobody queued.
void wake_watchers_at_commit(const LOCKTAG &gate);

// When it commits, the keeper that holds this lock looks again.
void wake_keeper_at_commit(const LOCKTAG &tag);

// At once.
void wake_keeper_now(const LOCKTAG &tag);

// Whether another session waits its turn for the lease.
bool somebody_queues(const LOCKTAG &gate);

} // namespace lease

#endif
