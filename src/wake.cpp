#include "wake.hpp"

namespace lease {

namespace {

// What to look up before the commit, and whom to wake after it; both live in the server's
// memory context of the transaction. Allocating after the commit would be a PANIC if it failed.
struct Change {
    Change *next;
    LOCKTAG tag; // held by who is to be woken
};

struct Sleeper {
    Sleeper *next;
    PGPROC *process;
};

Change *changes;
Sleeper *sleepers;

void find_sleepers(const LOCKTAG &tag) {
    int count = 0;
    const VirtualTransactionId *holders = GetLockConflicts(&tag, ExclusiveLock, &count);
    for (int i = 0; i < count; i++) {
        PGPROC *process = server::process_of(holders[i]);
        if (process == nullptr)
            continue;
        auto *sleeper = (Sleeper *)palloc(sizeof(Sleeper));
        *sleeper = {sleepers, process};
        sleepers = sleeper;
    }
}

void before_commit() {
    const MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    for (const Change *change = changes; change != nullptr; change = change->next) {
        find_sleepers(change->tag);
    }
    MemoryContextSwitchTo(caller);
}

// A process that has gone, or serves another session by now, looks once for nothing.
void wake_sleepers() {
    for (const Sleeper *sleeper = sleepers; sleeper != nullptr; sleeper = sleeper->next)
        SetLatch(&sleeper->process->procLatch);
}

void on_transaction_event(XactEvent event, void *) {
    if (event == XACT_EVENT_PRE_COMMIT) {
        before_commit();
        return;
    }
    if (event == XACT_EVENT_COMMIT)
        wake_sleepers();
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE) {
        changes = nullptr;
        sleepers = nullptr;
    }
}

} // namespace

void watch_commits() {
    RegisterXactCallback(on_transaction_event, nullptr);
}

void wake_at_commit(const LOCKTAG &gate) {
    wake_holder_at_commit(queue_tag(gate));
    wake_holder_at_commit(watch_tag(gate));
}

void wake_holder_at_commit(const LOCKTAG &tag) {
    auto *change = (Change *)MemoryContextAlloc(TopTransactionContext, sizeof(Change));
    *change = {changes, tag};
    changes = change;
}

void wake_holder_now(const LOCKTAG &tag) {
    int count = 0;
    const VirtualTransactionId *holders = GetLockConflicts(&tag, ExclusiveLock, &count);
    for (int i = 0; i < count; i++) {
        PGPROC *process = server::process_of(holders[i]);
        if (process != nullptr)
            SetLatch(&process->procLatch);
    }
}

bool somebody_queues(const LOCKTAG &gate) {
    return is_held(queue_tag(gate), ExclusiveLock);
}

} // namespace lease
