// Fences: a transaction that passed one commits before any later tenure begins.
// Invariant: a passed fence holds the lease's gate in shared mode to the end of
// its transaction (or of the subtransaction that is rolled back), and with it
// every new tenure, release and break out.
#ifndef LEASE_FENCE_HPP
#define LEASE_FENCE_HPP

#include "operation.hpp"

namespace lease {

constexpr int sqlstate_lease = MAKE_SQLSTATE('L', 'E', 'A', 'S', 'E');

// Installs the callbacks that forget fences; called once, when the library is loaded.
void watch_fences();

// Passes the fence, or raises an error: LEASE if the token is not the live tenure's;
// 40001 if this transaction's snapshot is older than the grant; 55P03, 40P01, 57014
// while it waits for a release or break.
void pass_fence(Table &table, std::string_view name, std::int64_t token);

// Whether this transaction has passed a fence on this very lease.
bool has_passed_fence(std::string_view name);

// A grant made by this transaction, behind the gate, after the tenure with the token `after`, if
// any. Whether the transaction's snapshot is too old for it is decided now.
void note_own_grant(std::string_view name, std::int64_t token, std::optional<std::int64_t> after);

} // namespace lease

#endif
