// Waits in the server's lock manager, which see deadlocks, lock_timeout and cancels.
#ifndef LEASE_WAIT_HPP
#define LEASE_WAIT_HPP

#include "core/duration.hpp"

#include <optional>

#include "server.hpp"

namespace lease {

// The database's clock, in microseconds as timestamps have them. Not now(): that
// stands still in a transaction.
inline Usec read_clock() {
    return GetCurrentTimestamp();
}

// Waits until the transaction has ended, or until the deadline if one is given.
// Errors: 55P03 by the session's lock_timeout, 40P01, 57014.
void wait_for_transaction(TransactionId xid, std::optional<Usec> deadline);

} // namespace lease

#endif
