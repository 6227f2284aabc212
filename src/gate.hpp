// The gate of a lease: a lock in the server's lock manager, held to the end of the
// transaction, that keeps a new tenure out while the old one's work may still commit.
// Invariant: nobody waits for a row while holding a gate exclusively.
#ifndef LEASE_GATE_HPP
#define LEASE_GATE_HPP

#include "core/tenure.hpp"

#include "server.hpp"

namespace lease {

// Lock tags in the advisory space, told apart from users' advisory locks by their
// fourth field (pg_locks.objsubid). A name counts by the first 8 bytes of its SHA-256:
// nobody can find a second name that meets the first.
LOCKTAG gate_tag(std::string_view name);
LOCKTAG queue_tag(const LOCKTAG &gate);          // held or awaited by who waits for the lease
LOCKTAG watch_tag(const LOCKTAG &gate);          // shared by who watches it
LOCKTAG sequence_tag();                          // of who moves the sequence of the tokens up
LOCKTAG keeper_tag(Oid table);                   // held by the one keeper of a table of leases
LOCKTAG binding_tag(Oid table);                  // of who binds a lease: the keeper may not leave
LOCKTAG session_tag(int pid, TimestampTz start); // held by a session that leases are bound to

// What a lock of this database in the lock manager is.
enum class TagUse { none, gate, queue, watch };
TagUse use_of(const LOCKTAG &tag);
bool is_same_lease(const LOCKTAG &one, const LOCKTAG &other);

// Fences share the gate; a new tenure, a release and a break want it alone.
constexpr LOCKMODE gate_shared = RowShareLock;
constexpr LOCKMODE gate_alone = ExclusiveLock;

// Of the binding tag: many bind at once, one of them starts the keeper, which leaves alone.
constexpr LOCKMODE binding_shared = RowExclusiveLock;
constexpr LOCKMODE binding_starter = ShareUpdateExclusiveLock;
constexpr LOCKMODE binding_alone = ExclusiveLock;

// Takes it if nobody holds it in a mode that conflicts. Never waits.
bool try_lock(const LOCKTAG &tag, LOCKMODE mode);

// Takes it, waiting. Errors: 55P03 by lock_timeout, 40P01, 57014.
void take_lock(const LOCKTAG &tag, LOCKMODE mode);

// Whether the open transaction of another session holds it in a mode that conflicts.
bool is_held(const LOCKTAG &tag, LOCKMODE mode);

// Whether another session holds it alone, in a transaction or outside of one.
bool is_held_by_session(const LOCKTAG &tag);

// Gives it back before the end of the transaction.
void give_back(const LOCKTAG &tag, LOCKMODE mode);

} // namespace lease

#endif
