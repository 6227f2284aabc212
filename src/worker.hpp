// The background workers that keepers run in: how one is described and started.
// Invariant: one session at a time starts one, and the others wait for it, so that
// a database never takes more worker slots than it needs.
#ifndef LEASE_WORKER_HPP
#define LEASE_WORKER_HPP

#include "server.hpp"

namespace lease {

// What a keeper is told, in the worker's bgw_extra.
struct Orders {
    Oid function;               // of the extension; invalid: find it
    char database[NAMEDATALEN]; // empty: the worker's argument is its OID
};

// Sees to it that a keeper runs for this table until the current transaction has ended.
// `function` is any of the extension, by which the keeper finds the table. Locks: the binding
// tag, to the end of the transaction. Errors: 53400 if no background worker can be started;
// 55P03, 57014 while it waits for another session that starts one.
void ensure_keeper(Oid table, Oid function);

// Starts another one in the place of the keeper that calls it, if a worker slot is free.
void leave_successor(Oid function);

// Registers the keepers of lease.keeper_databases; called when the library is preloaded.
void register_boot_keepers(const char *databases);

} // namespace lease

#endif
