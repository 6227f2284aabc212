// How durably a transaction commits.
// Invariant: a grant, a renewal or a kept release that was told to the client
// survives a crash and a failover to a synchronous standby, whatever
// synchronous_commit says; a transaction that did nothing but release waits for
// no disk, since a release that is forgotten only lasts until its expiry.
#ifndef LEASE_DURABILITY_HPP
#define LEASE_DURABILITY_HPP

namespace lease {

// Installs the transaction callback; called once, when the library is loaded.
void watch_transactions();

// This transaction has to be durable. Call before the write.
void require_durable_commit();

// Bracket a write that moves no expiry later: the commit may be asynchronous as
// long as such writes are all that this transaction adds to the WAL.
void begin_forgettable_write();
void end_forgettable_write();

} // namespace lease

#endif
