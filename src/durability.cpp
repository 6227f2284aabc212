#include "durability.hpp"

#include "server.hpp"

namespace lease {

namespace {

// What the current top-level transaction did. Trivial, so that leaving by error costs nothing.
struct Commit {
    bool must_be_durable;
    bool forgettable;       // did at least one forgettable write
    bool mixed;             // wrote something else before or between them
    XLogRecPtr own_wal_end; // where the last forgettable write left the WAL
    bool made_asynchronous;
    bool level_is_ours;
    int session_level; // synchronous_commit before it was ours
    int64 wal_records; // when it was made asynchronous
};

Commit current;

// Without the machinery of settings, which would cost more than the release of a lease itself. The
// setting's own hook has to run, the wait for a synchronous standby follows it.
void set_level(int level) {
    synchronous_commit = level;
    assign_synchronous_commit(level, nullptr);
}

void set_level_for_this_commit(int level) {
    current.session_level = synchronous_commit;
    current.level_is_ours = true;
    set_level(level);
}

// Runs at every end of a transaction, also after an error.
void give_level_back() {
    if (current.level_is_ours)
        set_level(current.session_level);
    current = {};
}

void before_commit() {
    if (current.must_be_durable) {
        if (synchronous_commit < SYNCHRONOUS_COMMIT_ON)
            set_level_for_this_commit(SYNCHRONOUS_COMMIT_ON);
        return;
    }
    if (!current.forgettable || current.mixed || XactLastRecEnd != current.own_wal_end)
        return;
    if (synchronous_commit > SYNCHRONOUS_COMMIT_OFF) {
        current.wal_records = pgWalUsage.wal_records;
        set_level_for_this_commit(SYNCHRONOUS_COMMIT_OFF);
        current.made_asynchronous = true;
    }
}

// Another extension's callback may have written after before_commit(). Nothing here may fail:
// the transaction has committed.
void after_commit() {
    if (!current.made_asynchronous || pgWalUsage.wal_records - current.wal_records <= 1)
        return;
    XLogFlush(XactLastCommitEnd);
    set_level(current.session_level);
    SyncRepWaitForLSN(XactLastCommitEnd, true);
}

void on_transaction_event(XactEvent event, void *) {
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
    case XACT_EVENT_PRE_PREPARE:
        before_commit();
        break;
    case XACT_EVENT_COMMIT:
        after_commit();
        give_level_back();
        break;
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
        give_level_back();
        break;
    default:
        break;
    }
}

} // namespace

void watch_transactions() {
    RegisterXactCallback(on_transaction_event, nullptr);
}

void require_durable_commit() {
    current.must_be_durable = true;
}

void begin_forgettable_write() {
    if (XactLastRecEnd != current.own_wal_end)
        current.mixed = true;
}

void end_forgettable_write() {
    current.forgettable = true;
    current.own_wal_end = XactLastRecEnd;
}

} // namespace lease
