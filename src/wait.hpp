// Waits in the server's lock manager, which sees deadlocks, timeouts and cancels.
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

// How long a wait may last: until the deadline if there is one, and if the session's
// lock_timeout counts, no longer than that (error 55P03).
struct Patience {
    std::optional<Usec> deadline;
    bool session_timeout = false;
};

// All of these return whether what they wait for came before the deadline.
// Errors: 55P03 if the session's lock_timeout counts, 40P01, 57014.
bool wait_for_lock(const LOCKTAG &tag, LOCKMODE mode, const Patience &patience);
bool wait_for_transaction(TransactionId xid, const Patience &patience);
bool wait_for_transaction(const VirtualTransactionId &transaction, const Patience &patience);

} // namespace lease

#endif
