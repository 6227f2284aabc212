#include "dist_lock.hpp"

#include "core/faults.hpp"
#include "hints.hpp"
#include "row_version.hpp"

namespace lease {

namespace {

// Reads the row that `look.tuple` describes, in a buffer that is pinned and not locked.
void read_row(Table &table, Look &look) {
    look.row = row_from(table, &look.tuple);
    look.entitled.reset();
}

// The name in the row that was read last.
std::string_view name_of(const Table &table) {
    return text_view(table.values[col_name]);
}

// A hint may lead to where the table's tail was cut off. Whoever does that locks the table alone
// and says so before it lets go: the length that this process remembers is not too long. It asks
// the file only if that one is too short, or forgotten.
bool has_block(Relation heap, BlockNumber block) {
    const BlockNumber known = RelationGetSmgr(heap)->smgr_cached_nblocks[MAIN_FORKNUM];
    return (known != InvalidBlockNumber && block < known) ||
           block < RelationGetNumberOfBlocks(heap);
}

// Follows a hint, if there is one that leads to the row.
bool find_by_hint(Table &table, std::string_view name, Look &look) {
    const ItemPointerData *hint = hint_for(name);
    if (hint == nullptr)
        return false;
    const BlockNumber block = ItemPointerGetBlockNumber(hint);
    if (!has_block(table.heap, block))
        return false;

    look.buffer = ReadBuffer(table.heap, block);
    LockBuffer(look.buffer, BUFFER_LOCK_SHARE);
    const bool visible = visible_version(table.heap, look.buffer, *hint, SnapshotSelf, &look.tuple);
    LockBuffer(look.buffer, BUFFER_LOCK_UNLOCK);
    if (visible) {
        read_row(table, look);
        if (name_of(table) == name || planted("hint-not-checked"))
            return true;
    }
    let_go(look);
    return false;
}

// Whether the snapshot sees a version in the chain that starts at `tid`. With a snapshot that
// knows no time, `all_dead` says whether the index entry may be marked as dead.
bool visible_in_chain(Relation heap, Buffer buffer, ItemPointer tid, Snapshot snapshot,
                      HeapTuple tuple, bool *all_dead) {
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    bool visible = false;
    if (IsMVCCSnapshot(snapshot)) {
        *all_dead = false;
        visible = visible_version(heap, buffer, *tid, snapshot, tuple);
    } else {
        ItemPointerData place = *tid;
        visible = heap_hot_search_buffer(&place, heap, buffer, snapshot, tuple, all_dead, true);
    }
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
    return visible;
}

// Looks at what an index entry leads to; without a visible version, the look is let go.
bool see_in_chain(Table &table, ItemPointer tid, Snapshot snapshot, Look &look,
                  IndexScanDesc scan) {
    look.buffer = ReadBuffer(table.heap, ItemPointerGetBlockNumber(tid));
    bool all_dead = false;
    const bool visible =
        visible_in_chain(table.heap, look.buffer, tid, snapshot, &look.tuple, &all_dead);
    if (!visible)
        let_go(look);
    scan->kill_prior_tuple = all_dead && !scan->xactStartedInRecovery;
    return visible;
}

// Looks up by the primary key, and reads the row. The scan itself knows no snapshot, so that a
// SERIALIZABLE transaction leaves no predicate lock on an index page that other leases share.
bool find_by_index(Table &table, std::string_view name, Snapshot snapshot, Look &look) {
    ScanKeyData key;
    ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, text_datum(name));
    const IndexScanDesc scan =
        server::begin_index_scan(table.heap, primary_key(table), SnapshotAny, 1);
    index_rescan(scan, &key, 1, nullptr, 0);

    bool found = false;
    for (ItemPointer tid = nullptr;
         !found && (tid = index_getnext_tid(scan, ForwardScanDirection)) != nullptr;) {
        CHECK_FOR_INTERRUPTS();
        if (!see_in_chain(table, tid, snapshot, look, scan))
            continue;
        // A chain of versions can lead to a row that was renamed by hand.
        read_row(table, look);
        found = name_of(table) == name;
        if (!found)
            let_go(look);
    }
    index_endscan(scan);
    return found;
}

// Takes the lock for a change, unless the table is open with it. False: somebody has locked the
// table.
bool try_lock_for_change(const Table &table) {
    return table.lock == RowExclusiveLock ||
           ConditionalLockRelationOid(RelationGetRelid(table.heap), RowExclusiveLock);
}

// Waits for that lock; from then on the table is open with it.
void lock_for_change(Table &table) {
    LockRelationOid(RelationGetRelid(table.heap), RowExclusiveLock);
    UnlockRelationOid(RelationGetRelid(table.heap), table.lock);
    table.lock = RowExclusiveLock;
}

// Whether nobody has changed or locked the row since the look; a lock of our own and one of a
// foreign key want a closer look. Pruning may have moved it on its page.
bool is_free(Table &table, Look &look) {
    const HeapTupleHeader seen = look.tuple.t_data;
    bool free = false;
    LockBuffer(look.buffer, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(look.buffer);
    const ItemId item = PageGetItemId(page, ItemPointerGetOffsetNumber(&look.tuple.t_self));
    if (ItemIdIsNormal(item)) {
        look.tuple.t_data = (HeapTupleHeader)PageGetItem(page, item);
        free =
            HeapTupleSatisfiesUpdate(&look.tuple, GetCurrentCommandId(false), look.buffer) == TM_Ok;
    }
    LockBuffer(look.buffer, BUFFER_LOCK_UNLOCK);
    if (free && look.tuple.t_data != seen)
        read_row(table, look);
    return free;
}

} // namespace

void let_go(Look &look) {
    if (BufferIsValid(look.buffer))
        ReleaseBuffer(look.buffer);
    look.buffer = InvalidBuffer;
}

Look find(Table &table, std::string_view name) {
    // A snapshot keeps what is found from being removed, and its place from being reused.
    Assert(ActiveSnapshotSet());
    Look look;
    if (find_by_hint(table, name, look))
        return look;
    if (find_by_index(table, name, SnapshotSelf, look)) {
        remember_hint(name, look.tuple.t_self);
        return look;
    }
    if (planted("missing-believed"))
        return look;
    // The scan may have passed the new version's index entry before it was there, and come to
    // the old version when it was dead already. What a snapshot sees cannot slip away like that.
    const Snapshot snapshot = RegisterSnapshot(GetCatalogSnapshot(RelationGetRelid(table.heap)));
    find_by_index(table, name, snapshot, look);
    UnregisterSnapshot(snapshot);
    return look;
}

bool is_unchanged(const Look &look) {
    HeapTupleData tuple = look.tuple;
    LockBuffer(look.buffer, BUFFER_LOCK_SHARE);
    const bool unchanged = HeapTupleSatisfiesVisibility(&tuple, SnapshotSelf, look.buffer);
    LockBuffer(look.buffer, BUFFER_LOCK_UNLOCK);
    return unchanged;
}

bool is_being_inserted(Table &table, std::string_view name) {
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    Look look;
    const bool found = find_by_index(table, name, &dirty, look);
    let_go(look);
    return found;
}

void for_each_bound(Table &table, void (*visit)(const Row &, std::string_view name, void *arg),
                    void *arg) {
    const Snapshot snapshot = RegisterSnapshot(GetCatalogSnapshot(RelationGetRelid(table.heap)));
    const Relation index = open_session_index(table);
    const IndexScanDesc scan = server::begin_index_scan(table.heap, index, SnapshotAny, 0);
    index_rescan(scan, nullptr, 0, nullptr, 0);
    Look look;
    for (ItemPointer tid = nullptr;
         (tid = index_getnext_tid(scan, ForwardScanDirection)) != nullptr;) {
        CHECK_FOR_INTERRUPTS();
        if (!see_in_chain(table, tid, snapshot, look, scan))
            continue;
        read_row(table, look);
        if (look.row.session_pid)
            visit(look.row, name_of(table), arg);
        let_go(look);
    }
    index_endscan(scan);
    index_close(index, AccessShareLock);
    UnregisterSnapshot(snapshot);
}

SeenTenure tenure_before_transaction(Table &table, std::string_view name) {
    // Seen from before its first command, the transaction has changed nothing yet.
    SnapshotData before = *GetTransactionSnapshot();
    before.curcid = FirstCommandId;
    Look look;
    if (!find_by_index(table, name, &before, look))
        return {std::nullopt, false};
    const SeenTenure seen{look.row.token, !look.row.owner};
    let_go(look);
    return seen;
}

Locking lock_row(Table &table, Look &look, LockTupleMode mode) {
    close_index(table);
    if (!try_lock_for_change(table)) {
        // No pin over a wait: behind whoever we wait for, vacuum may wait for this page. The lock
        // is kept for the next attempt: who queues for the table would turn that down as well, and
        // for ever if it is us that it waits for.
        let_go(look);
        lock_for_change(table);
        return Locking::changed;
    }

    // Readers of this table never prune, so that losing tries write nothing.
    heap_page_prune_opt(table.heap, look.buffer);
    if (server::updates_unlocked_rows && mode != LockTupleExclusive && is_free(table, look))
        return Locking::free;

    TM_FailureData failure;
    Buffer locked = InvalidBuffer;
    const TM_Result result = heap_lock_tuple(table.heap, &look.tuple, GetCurrentCommandId(true),
                                             mode, LockWaitSkip, false, &locked, &failure);
    let_go(look);
    look.buffer = locked;

    switch (result) {
    case TM_Ok:
        look.locked = true;
        table.changes = true;
        read_row(table, look);
        return Locking::free;
    case TM_WouldBlock:
        leave_unchanged(table);
        return Locking::busy;
    case TM_Updated:
    case TM_Deleted:
        leave_unchanged(table);
        return Locking::changed;
    default:
        ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
                        errmsg("a lease cannot be changed by the statement that changes its row "
                               "in \"dist_lock\"")));
    }
    pg_unreachable();
}

void leave_unchanged(Table &table) {
    if (table.lock != RowExclusiveLock)
        UnlockRelationOid(RelationGetRelid(table.heap), RowExclusiveLock);
}

Lockers lockers_of(const Look &look) {
    LockBuffer(look.buffer, BUFFER_LOCK_SHARE);
    const uint16 infomask = look.tuple.t_data->t_infomask;
    const TransactionId xmax = HeapTupleHeaderGetRawXmax(look.tuple.t_data);
    LockBuffer(look.buffer, BUFFER_LOCK_UNLOCK);

    if ((infomask & HEAP_XMAX_INVALID) || HEAP_LOCKED_UPGRADED(infomask))
        return {0, nullptr};
    if (infomask & HEAP_XMAX_IS_MULTI) {
        MultiXactMember *members = nullptr;
        const int count =
            GetMultiXactIdMembers(xmax, &members, false, HEAP_XMAX_IS_LOCKED_ONLY(infomask));
        return {count, members};
    }
    const bool key_share =
        HEAP_XMAX_IS_LOCKED_ONLY(infomask) && HEAP_XMAX_IS_KEYSHR_LOCKED(infomask);
    auto *member = (MultiXactMember *)palloc(sizeof(MultiXactMember));
    *member = {xmax, key_share ? MultiXactStatusForKeyShare : MultiXactStatusUpdate};
    return {1, member};
}

void wait_for_lockers(const Lockers &lockers, const Patience &patience) {
    for (int i = 0; i < lockers.count; i++) {
        const MultiXactMember &locker = lockers.members[i];
        if (locker.status != MultiXactStatusForKeyShare &&
            !TransactionIdIsCurrentTransactionId(locker.xid) &&
            !wait_for_transaction(locker.xid, patience))
            return;
    }
}

} // namespace lease
