#include "wake.hpp"

#include "core/faults.hpp"

namespace lease {

namespace {

// What to look up before the commit, and whom to wake after it; both live in the server's
// memory context of the transaction. Allocating after the commit would be a PANIC if it failed.
struct Change {
    Change *next;
    LOCKTAG tag; // held by who is to be woken
    bool by_keeper;
};

struct Sleeper {
    Sleeper *next;
    PGPROC *process;
};

Change *changes;
Sleeper *sleepers;

struct Holders {
    const VirtualTransactionId *transactions;
    int count;
};

Holders holders_of(const LOCKTAG &tag) {
    Holders holders = {nullptr, 0};
    holders.transactions = GetLockConflicts(&tag, ExclusiveLock, &holders.count);
    return holders;
}

// A keeper that is between two transactions for some microseconds is not found then.
Holders find_keeper(const LOCKTAG &tag) {
    Holders holders = holders_of(tag);
    for (int attempt = 0; holders.count == 0 && attempt < 20; attempt++) {
        pg_usleep(100);
        pfree((void *)holders.transactions);
        holders = holders_of(tag);
    }
    return holders;
}

void find_sleepers(const Change &change) {
    const auto [holders, count] =
        change.by_keeper ? find_keeper(change.tag) : holders_of(change.tag);
    for (int i = 0; i < count; i++) {
        PGPROC *process = server::process_of(holders[i]);
        if (process == nullptr)
            continue;
        auto *sleeper = (Sleeper *)palloc(sizeof(Sleeper));
        *sleeper = {sleepers, process};
        sleepers = sleeper;
    }
    pfree((void *)holders);
}

// A transaction that works on one lease over and over notes each of its locks once.
bool was_just_noted(const LOCKTAG &tag) {
    int looked = 0;
    for (const Change *change = changes; change != nullptr && looked < 3; change = change->next) {
        if (memcmp(&change->tag, &tag, sizeof(tag)) == 0)
            return true;
        looked++;
    }
    return false;
}

void before_commit() {
    const MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    for (const Change *change = changes; change != nullptr; change = change->next) {
        CHECK_FOR_INTERRUPTS();
        find_sleepers(*change);
    }
    MemoryContextSwitchTo(caller);
}

// A process that has gone, or serves another session by now, looks once for nothing.
void wake_sleepers() {
    for (const Sleeper *sleeper = sleepers; sleeper != nullptr; sleeper = sleeper->next)
        SetLatch(&sleeper->process->procLatch);
}

void on_transaction_event(XactEvent event, void *) {
    if (event == XACT_EVENT_PRE_COMMIT)
        before_commit();
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
        changes = nullptr;
    if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
        sleepers = nullptr;
}

// Who is woken finds the gate open: else it would have to sleep once more, on that lock.
void on_locks_released(ResourceReleasePhase phase, bool, bool is_top_level, void *) {
    if (phase != RESOURCE_RELEASE_AFTER_LOCKS || !is_top_level)
        return;
    if (!planted("wake-up-lost"))
        wake_sleepers();
    sleepers = nullptr;
}

void note_change(const LOCKTAG &tag, bool by_keeper) {
    if (was_just_noted(tag))
        return;
    auto *change = (Change *)MemoryContextAlloc(TopTransactionContext, sizeof(Change));
    *change = {changes, tag, by_keeper};
    changes = change;
}

} // namespace

void watch_commits() {
    RegisterXactCallback(on_transaction_event, nullptr);
    RegisterResourceReleaseCallback(on_locks_released, nullptr);
}

void wake_at_commit(const LOCKTAG &gate) {
    note_change(queue_tag(gate), false);
    wake_watchers_at_commit(gate);
}

void wake_watchers_at_commit(const LOCKTAG &gate) {
    note_change(watch_tag(gate), false);
}

void wake_keeper_at_commit(const LOCKTAG &tag) {
    note_change(tag, true);
}

void wake_keeper_now(const LOCKTAG &tag) {
    const auto [holders, count] = find_keeper(tag);
    for (int i = 0; i < count; i++) {
        PGPROC *process = server::process_of(holders[i]);
        if (process != nullptr)
            SetLatch(&process->procLatch);
    }
    pfree((void *)holders);
}

bool somebody_queues(const LOCKTAG &gate) {
    return is_held(queue_tag(gate), ExclusiveLock);
}

} // namespace lease
