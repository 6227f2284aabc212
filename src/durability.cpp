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
    int session_level; // synchronous_commit before it was made asynchronous
    int64 wal_records; // at that moment
};

Commit current;

void set_level_for_this_commit(const char *level) {
    // Local to the transaction: the server takes it back at its end, also after an error.
    // The setting's own hook has to run, the wait for a synchronous standby follows it. (A source
    // of less weight than the session's would change the session's default for good.)
    set_config_option("synchronous_commit", level, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL,
                      true, 0, false);
}

void before_commit() {
    if (current.must_be_durable) {
        if (synchronous_commit < SYNCHRONOUS_COMMIT_ON)
            set_level_for_this_commit("on");
        return;
    }
    if (!current.forgettable || current.mixed || XactLastRecEnd != current.own_wal_end)
        return;
    if (synchronous_commit > SYNCHRONOUS_COMMIT_OFF) {
        current.session_level = synchronous_commit;
        current.wal_records = pgWalUsage.wal_records;
        set_level_for_this_commit("off");
        current.made_asynchronous = true;
    }
}

// Another extension's callback may have written after before_commit(). Nothing here may fail:
// the transaction has committed.
void after_commit() {
    if (!current.made_asynchronous || pgWalUsage.wal_records - current.wal_records <= 1)
        return;
    XLogFlush(XactLastCommitEnd);
    synchronous_commit = current.session_level;
    assign_synchronous_commit(current.session_level, nullptr);
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
        current = {};
        break;
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
        current = {};
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
