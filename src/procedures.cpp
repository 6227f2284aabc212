// What CALL calls: lease_acquire and lease_watch, which wait.
// A CALL that is the client's own statement, outside a transaction block, commits
// before it waits (it has done nothing yet) and waits in a transaction that has
// neither snapshot nor transaction ID. In any other place it must not commit what
// others did, and holds what its caller holds.

#include "operation.hpp"
#include "queue.hpp"

extern "C" {
#include "tcop/pquery.h"
#include "utils/portal.h"

#pragma GCC visibility push(default)
PG_FUNCTION_INFO_V1(lease_acquire);
PG_FUNCTION_INFO_V1(lease_watch);
#pragma GCC visibility pop
}

namespace lease {

namespace {

// A text that outlives a commit.
struct KeptText {
    size_t length;
    char bytes[longest_name];

    std::string_view view() const { return {bytes, length}; }
};

KeptText keep_text(std::string_view text) {
    KeptText kept = {};
    kept.length = text.size();
    memcpy(kept.bytes, text.data(), text.size());
    return kept;
}

bool is_clients_own_statement(FunctionCallInfo fcinfo) {
    const bool atomic = fcinfo->context == nullptr || !IsA(fcinfo->context, CallContext) ||
                        castNode(CallContext, fcinfo->context)->atomic;
    return !atomic && !SPI_inside_nonatomic_context() && !(MyXactFlags & XACT_FLAGS_PIPELINING);
}

// In a READ COMMITTED block the statement's snapshot is of no use while it waits, if the CALL is
// the portal's own command and not one inside a function.
bool can_let_snapshot_go() {
    return !IsolationUsesXactSnapshot() && ActivePortal != nullptr && ActiveSnapshotSet() &&
           ActivePortal->portalSnapshot == GetActiveSnapshot();
}

// The portal keeps it twice, once for detoasting what the CALL returns: which is a number.
void let_snapshot_go() {
    const Portal portal = ActivePortal;
    portal->portalSnapshot = nullptr;
    PopActiveSnapshot();
    if (portal->holdSnapshot != nullptr) {
        UnregisterSnapshotFromOwner(portal->holdSnapshot, portal->resowner);
        portal->holdSnapshot = nullptr;
    }
}

// How the call waits, to be ended the same way.
struct Waiting {
    bool own_transaction;
    bool snapshot_let_go;
    ResourceOwner caller; // of resources
};

Waiting begin_waiting(bool own_transaction) {
    Waiting waiting = {own_transaction, false, CurrentResourceOwner};
    if (own_transaction) {
        if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
            elog(ERROR, "SPI_connect_ext failed");
        SPI_commit();
    } else if (can_let_snapshot_go()) {
        let_snapshot_go();
        waiting.snapshot_let_go = true;
    }
    InvalidateCatalogSnapshotConditionally();
    // Locks that a subtransaction took go to the transaction, not to the portal.
    CurrentResourceOwner = CurTransactionResourceOwner;
    return waiting;
}

void end_waiting(const Waiting &waiting) {
    if (waiting.own_transaction) {
        SPI_finish();
        return;
    }
    CurrentResourceOwner = waiting.caller;
    if (waiting.snapshot_let_go)
        EnsurePortalSnapshotExists();
}

// When a wait of this length from now ends; nothing: never.
std::optional<Usec> deadline_argument(FunctionCallInfo fcinfo, int number) {
    if (PG_ARGISNULL(number))
        return std::nullopt;
    return instant_after(GetCurrentTimestamp(), wait_argument(fcinfo, number, "wait"));
}

// The one INOUT parameter, as the record that CALL wants.
Datum token_record(std::optional<std::int64_t> token) {
    TupleDesc desc = CreateTemplateTupleDesc(1);
    TupleDescInitEntry(desc, 1, "token", INT8OID, -1, 0);
    desc = BlessTupleDesc(desc);
    Datum value = Int64GetDatum(token.value_or(0));
    bool null = !token;
    return HeapTupleGetDatum(heap_form_tuple(desc, &value, &null));
}

// What can be had without waiting for anybody.
Attempt attempt_at_once(const Wanted &wanted) {
    Table table = open_table(wanted.function, AccessShareLock);
    const Attempt attempt =
        attempt_lease(table, wanted.name, wanted.owner, wanted.ttl, Turn::unknown);
    close_table(table);
    return attempt;
}

} // namespace

} // namespace lease

using namespace lease;

Datum lease_acquire(PG_FUNCTION_ARGS) {
    const KeptText name = keep_text(text_argument(fcinfo, 0, "name"));
    const KeptText owner = keep_text(text_argument(fcinfo, 1, "owner"));
    const Usec ttl = ttl_argument(fcinfo, 2);
    const std::optional<Usec> deadline = deadline_argument(fcinfo, 3);
    const Wanted wanted{fcinfo->flinfo->fn_oid, name.view(), owner.view(), ttl};
    PreventCommandIfReadOnly("lease_acquire()");
    PreventCommandIfParallelMode("lease_acquire()");

    const bool own_transaction = is_clients_own_statement(fcinfo);

    const Attempt attempt = attempt_at_once(wanted);
    std::optional<std::int64_t> token;
    if (attempt.verdict == Verdict::held) {
        token = attempt.token;
    } else if (!deadline || *deadline > GetCurrentTimestamp()) {
        const Waiting waiting = begin_waiting(own_transaction);
        token =
            acquire_lease(wanted, deadline, attempt.verdict == Verdict::own_busy, own_transaction);
        end_waiting(waiting);
    }
    return token_record(token);
}

Datum lease_watch(PG_FUNCTION_ARGS) {
    const KeptText name = keep_text(text_argument(fcinfo, 0, "name"));
    const std::optional<std::int64_t> known = token_argument(fcinfo, 1);
    const std::optional<Usec> deadline = deadline_argument(fcinfo, 2);
    const Oid function = fcinfo->flinfo->fn_oid;
    PreventCommandDuringRecovery("lease_watch()");

    const Waiting waiting = begin_waiting(is_clients_own_statement(fcinfo));
    const std::optional<std::int64_t> live = watch_lease(function, name.view(), known, deadline);
    end_waiting(waiting);
    return token_record(live);
}
