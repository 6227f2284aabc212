#include "wait.hpp"

namespace lease {

namespace {

void wait_without_deadline(TransactionId xid) {
    XactLockTableWait(xid, nullptr, nullptr, XLTW_None);
}

// Sets the session's lock_timeout for one wait; the subtransaction around it makes an error of
// the wait end there, and leaves the caller's transaction as it was.
void wait_at_most(TransactionId xid, int milliseconds) {
    const MemoryContext context = CurrentMemoryContext;
    const ResourceOwner owner = CurrentResourceOwner;
    const int session_timeout = LockTimeout;
    const bool own_timeout = session_timeout == 0 || milliseconds < session_timeout;

    BeginInternalSubTransaction(nullptr);
    MemoryContextSwitchTo(context);
    PG_TRY();
    {
        if (own_timeout)
            LockTimeout = milliseconds;
        wait_without_deadline(xid);
        LockTimeout = session_timeout;
        ReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(context);
        CurrentResourceOwner = owner;
    }
    PG_CATCH();
    {
        LockTimeout = session_timeout;
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(context);
        CurrentResourceOwner = owner;
        if (!own_timeout || error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
            ReThrowError(error);
        FreeErrorData(error);
    }
    PG_END_TRY();
}

} // namespace

void wait_for_transaction(TransactionId xid, std::optional<Usec> deadline) {
    if (!deadline) {
        wait_without_deadline(xid);
        return;
    }
    // lock_timeout is a whole number of milliseconds, in 31 bits; zero would mean for ever.
    const Usec left = *deadline - read_clock();
    if (left <= 0)
        return;
    const Usec milliseconds = left / 1000 + 1;
    if (milliseconds > PG_INT32_MAX)
        wait_without_deadline(xid); // for weeks: as good as none
    else
        wait_at_most(xid, (int)milliseconds);
}

} // namespace lease
