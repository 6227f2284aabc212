// The keeper: a background worker, one a database, that renews the leases which are
// bound to a session and releases those whose session has gone.
// Invariants: a tenure that ran out is never renewed; the keeper waits for nobody,
// and sleeps with neither snapshot nor lock of a lease; it leaves two seconds after
// nothing is bound any more.
#ifndef LEASE_KEEPER_HPP
#define LEASE_KEEPER_HPP

#include "server.hpp"

namespace lease {

// Sees to it that a keeper runs for this table until the current transaction has ended.
// `function` is any of the extension, by which the keeper finds the table. Errors: 53400
// if no background worker can be started.
void ensure_keeper(Oid table, Oid function);

// Registers the keepers of lease.keeper_databases; called when the library is preloaded.
void register_boot_keepers(const char *databases);

} // namespace lease

#endif
