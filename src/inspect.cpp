// Who waits for a lease or is in the middle of one: the rows of view lease_waiters.
// The lock manager knows names by their digest only, so the table is read to tell
// which lease is meant; a look at it costs a scan, if any lease is in use at all.

#include "dist_lock.hpp"
#include "gate.hpp"

extern "C" {
#pragma GCC visibility push(default)
PG_FUNCTION_INFO_V1(lease_activity);
#pragma GCC visibility pop
}

namespace lease {

namespace {

// One lock of ours in the lock manager, or one transaction that has a row.
struct Use {
    LOCKTAG tag;
    const char *kind;
    int pid;
    TimestampTz waits_since; // 0: it does not wait
    bool named;
};

struct Uses {
    int count;
    Use *uses;
    bool anybody_locks; // somebody may have locked rows of the table
};

const char *kind_of(const LockInstanceData &lock) {
    switch (use_of(lock.locktag)) {
    case TagUse::queue:
        return "acquire";
    case TagUse::watch:
        return "watch";
    default:
        break;
    }
    const bool alone = (lock.holdMask & LOCKBIT_ON(gate_alone)) || lock.waitLockMode == gate_alone;
    return alone ? "busy" : "fence";
}

// Rows are locked under any lock on the table but a reader's.
bool may_lock_rows(const LockInstanceData &lock, Oid table) {
    return lock.locktag.locktag_type == LOCKTAG_RELATION &&
           lock.locktag.locktag_field1 == MyDatabaseId && lock.locktag.locktag_field2 == table &&
           (lock.holdMask & ~LOCKBIT_ON(AccessShareLock));
}

Uses uses_in_lock_manager(Oid table) {
    const LockData *locks = GetLockStatusData();
    Uses found = {0, (Use *)palloc0(locks->nelements * sizeof(Use) + 1), false};
    for (int i = 0; i < locks->nelements; i++) {
        const LockInstanceData &lock = locks->locks[i];
        found.anybody_locks |= may_lock_rows(lock, table);
        if (use_of(lock.locktag) != TagUse::none)
            found.uses[found.count++] = {lock.locktag, kind_of(lock), lock.pid,
                                         lock.waitLockMode != NoLock ? lock.waitStart : 0, false};
    }
    return found;
}

// The result: one row a use.
void put_use(ReturnSetInfo *result, Datum name, const Use &use) {
    Datum values[4] = {name, Int32GetDatum(use.pid), CStringGetTextDatum(use.kind),
                       TimestampTzGetDatum(use.waits_since)};
    bool nulls[4] = {name == (Datum)0, use.pid == 0, false, use.waits_since == 0};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

bool is_used_by(const Uses &uses, const LOCKTAG &gate, int pid) {
    for (int i = 0; i < uses.count; i++)
        if (uses.uses[i].pid == pid && is_same_lease(uses.uses[i].tag, gate))
            return true;
    return false;
}

void put_row_user(ReturnSetInfo *result, const Uses &uses, const LOCKTAG &gate, Datum name,
                  TransactionId xid) {
    if (!TransactionIdIsInProgress(xid))
        return;
    const int pid = BackendXidGetPid(SubTransGetTopmostTransaction(xid));
    if (!is_used_by(uses, gate, pid))
        put_use(result, name, {gate, "busy", pid, 0, true});
}

// Renewals hold no gate: their transactions are found by the row.
void put_users_of(ReturnSetInfo *result, Table &table, Uses &uses, HeapTuple seen, Buffer buffer) {
    heap_deform_tuple(seen, RelationGetDescr(table.heap), table.values, table.nulls);
    const Datum name = table.values[col_name];
    const LOCKTAG gate = gate_tag(text_view(name));

    for (int i = 0; i < uses.count; i++) {
        Use &use = uses.uses[i];
        if (!use.named && is_same_lease(use.tag, gate)) {
            put_use(result, name, use);
            use.named = true;
        }
    }
    Look look = {};
    look.tuple = *seen;
    look.buffer = buffer;
    const Lockers lockers = lockers_of(look);
    // Of a row that another transaction changes both versions are seen, and the old one tells; of
    // our own changes, the new one only.
    const TransactionId maker = HeapTupleHeaderGetXmin(seen->t_data);
    const bool ours = TransactionIdIsCurrentTransactionId(maker);
    for (int i = 0; i < lockers.count; i++) {
        const MultiXactMember &locker = lockers.members[i];
        if (locker.status != MultiXactStatusForKeyShare &&
            !(ours && TransactionIdIsCurrentTransactionId(locker.xid)))
            put_row_user(result, uses, gate, name, locker.xid);
    }
    if (ours || !(seen->t_data->t_infomask & HEAP_UPDATED))
        put_row_user(result, uses, gate, name, maker);
}

void put_uses(ReturnSetInfo *result, Table &table) {
    Uses uses = uses_in_lock_manager(RelationGetRelid(table.heap));
    if (uses.count == 0 && !uses.anybody_locks)
        return;

    const MemoryContext caller = CurrentMemoryContext;
    const MemoryContext per_row =
        AllocSetContextCreate(caller, "activity of one lease", ALLOCSET_DEFAULT_SIZES);
    SnapshotData dirty; // rows that are not committed yet are in use too
    InitDirtySnapshot(dirty);
    const TableScanDesc scan = table_beginscan(table.heap, &dirty, 0, nullptr);
    for (HeapTuple seen = nullptr; (seen = heap_getnext(scan, ForwardScanDirection)) != nullptr;) {
        CHECK_FOR_INTERRUPTS();
        MemoryContextSwitchTo(per_row);
        put_users_of(result, table, uses, seen, ((HeapScanDesc)scan)->rs_cbuf);
        MemoryContextSwitchTo(caller);
        MemoryContextReset(per_row);
    }
    table_endscan(scan);
    MemoryContextDelete(per_row);

    for (int i = 0; i < uses.count; i++)
        if (!uses.uses[i].named)
            put_use(result, (Datum)0, uses.uses[i]);
}

} // namespace

} // namespace lease

Datum lease_activity(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    lease::Table table = lease::open_table(fcinfo->flinfo->fn_oid, AccessShareLock);
    lease::put_uses((ReturnSetInfo *)fcinfo->resultinfo, table);
    lease::close_table(table);
    return (Datum)0;
}
