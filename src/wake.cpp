#include "wake.hpp"

namespace lease {

namespace {

// What to look up before the commit, and whom to wake after it; both live in the server's
// memory context of the transaction. Allocating after the commit would be a PANIC if it failed.
struct Change {
    Change *next;
    LOCKTAG queue;
    LOCKTAG watch;
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
        find_sleepers(change->queue);
        find_sleepers(change->watch);
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
    auto *change = (Change *)MemoryContextAlloc(TopTransactionContext, sizeof(Change));
    *change = {changes, queue_tag(gate), watch_tag(gate)};
    changes = change;
}

bool somebody_queues(const LOCKTAG &gate) {
    const LOCKTAG queue = queue_tag(gate);
    int count = 0;
    VirtualTransactionId *holders = GetLockConflicts(&queue, ExclusiveLock, &count);
    pfree(holders);
    return count > 0;
}

} // namespace lease
