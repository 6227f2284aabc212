#include "wait.hpp"

#include "gate.hpp"

namespace lease {

namespace {

// What to wait for: a function that waits, and what it is given.
struct Wait {
    void (*wait)(const Wait &);
    LOCKTAG tag;
    LOCKMODE mode;
    TransactionId xid;
    VirtualTransactionId transaction;
};

// Waits with another lock_timeout than the session's.
void wait_with_timeout(const Wait &what, int milliseconds) {
    const int session_timeout = LockTimeout;
    PG_TRY();
    {
        LockTimeout = milliseconds;
        what.wait(what);
        // A timeout that came in the moment of success is still pending.
        CHECK_FOR_INTERRUPTS();
    }
    PG_FINALLY();
    { LockTimeout = session_timeout; }
    PG_END_TRY();
}

// The same, and gives false if that timeout came. The subtransaction makes the error end here and
// leaves the caller's transaction, and all that it holds, as it was.
bool wait_at_most(const Wait &what, int milliseconds) {
    const MemoryContext context = CurrentMemoryContext;
    const ResourceOwner owner = CurrentResourceOwner;
    volatile bool came = true;

    BeginInternalSubTransaction(nullptr);
    MemoryContextSwitchTo(context);
    PG_TRY();
    {
        wait_with_timeout(what, milliseconds);
        ReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(context);
        CurrentResourceOwner = owner;
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(context);
        CurrentResourceOwner = owner;
        if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
            ReThrowError(error);
        FreeErrorData(error);
        came = false;
    }
    PG_END_TRY();
    return came;
}

// The session's own timeout, if it counts and ends the wait before the deadline does.
bool session_ends_it(const Patience &patience, Usec milliseconds) {
    return patience.session_timeout && LockTimeout > 0 && LockTimeout <= milliseconds;
}

bool wait_patiently(const Wait &what, const Patience &patience) {
    if (!patience.deadline) {
        if (patience.session_timeout || LockTimeout == 0)
            what.wait(what);
        else
            wait_with_timeout(what, 0);
        return true;
    }
    for (Usec left = 0; (left = *patience.deadline - read_clock()) > 0;) {
        // lock_timeout is a whole number of milliseconds in 31 bits, and 0 means for ever.
        const Usec milliseconds = Min(left / 1000 + 1, (Usec)PG_INT32_MAX);
        if (session_ends_it(patience, milliseconds)) {
            what.wait(what);
            return true;
        }
        if (wait_at_most(what, (int)milliseconds))
            return true;
    }
    return false;
}

} // namespace

bool wait_for_lock(const LOCKTAG &tag, LOCKMODE mode, const Patience &patience) {
    if (try_lock(tag, mode))
        return true;
    Wait what = {};
    what.wait = [](const Wait &lock) { take_lock(lock.tag, lock.mode); };
    what.tag = tag;
    what.mode = mode;
    return wait_patiently(what, patience);
}

bool wait_for_transaction(TransactionId xid, const Patience &patience) {
    Wait what = {};
    what.wait = [](const Wait &of) { XactLockTableWait(of.xid, nullptr, nullptr, XLTW_None); };
    what.xid = xid;
    return wait_patiently(what, patience);
}

bool wait_for_transaction(const VirtualTransactionId &transaction, const Patience &patience) {
    if (VirtualXactLock(transaction, false))
        return true;
    Wait what = {};
    what.wait = [](const Wait &of) { VirtualXactLock(of.transaction, true); };
    what.transaction = transaction;
    return wait_patiently(what, patience);
}

} // namespace lease
