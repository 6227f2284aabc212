// Leases that are bound to a session.
// Invariant: a session that leases are bound to holds a lock of its own for as long
// as it lives; whoever looks for that lock knows whether the session has gone.
#ifndef LEASE_BINDING_HPP
#define LEASE_BINDING_HPP

#include "operation.hpp"

namespace lease {

// Binds the tenure to this session. False: the owner does not hold it. Errors: 53400
// if no keeper can be started; 55P03, 40P01, 57014 while it waits for the row.
bool attach_lease(Table &table, Oid function, std::string_view name, const Claim &claim);

// Unbinds it. False: it is not bound to this session.
bool detach_lease(Table &table, std::string_view name, const Claim &claim);

// Whether the session that the row is bound to lives.
bool session_lives(const Row &row);

} // namespace lease

#endif
