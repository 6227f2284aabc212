// The keeper: a background worker, one a database, that renews the leases which are
// bound to a session and releases those whose session has gone.
// Invariants: a tenure that ran out is never renewed; the keeper waits for nobody,
// and sleeps with neither snapshot nor lock of a lease; it leaves two seconds after
// nothing is bound any more.
#ifndef LEASE_KEEPER_HPP
#define LEASE_KEEPER_HPP

#include "server.hpp"

#pragma GCC visibility push(default)
// What the worker runs; `database` is its OID, unless the worker's orders name it.
extern "C" void lease_keeper_main(Datum database);
#pragma GCC visibility pop

#endif
