#include "purge.hpp"

#include "statement.hpp"
#include "tokens.hpp"
#include "wait.hpp"

namespace lease {

namespace {

// So many rows are locked, then deleted by one statement.
constexpr int batch_size = 500;

struct Batch {
    int count = 0;
    Row newest; // of them: the one with the largest token
    Datum names[batch_size] = {};
};

std::int64_t delete_batch(Table &table, Batch &batch) {
    static Statement statement;
    if (batch.count == 0)
        return 0;
    const char *text = psprintf("DELETE FROM ONLY %s WHERE name OPERATOR(pg_catalog.=) ANY ($1)",
                                qualified_name(table.heap));
    const Oid types[1] = {TEXTARRAYOID};
    ArrayType *names = construct_array(batch.names, batch.count, TEXTOID, -1, false, TYPALIGN_INT);
    Datum values[1] = {PointerGetDatum(names)};
    batch.count = 0;
    // A token given by hand is remembered by its row alone: the sequence has to pass it before the
    // row goes.
    draw_token(table, &batch.newest);
    return (std::int64_t)run_as_owner(statement, table.heap, text,
                                      {1, types, values, nullptr, true});
}

// Locks the row that the scan has come to, if it is idle and nobody is busy on it; puts its name
// into the batch.
void add_if_idle(Table &table, HeapTuple seen, Usec idle, Batch &batch) {
    Look look = {};
    look.tuple = *seen;
    look.row = row_from(table, &look.tuple);
    Usec since = PG_INT64_MIN;
    if (__builtin_sub_overflow(read_clock(), idle, &since))
        since = PG_INT64_MIN;
    if (state_at(&look.row, since) != State::takeable)
        return;

    look.buffer = ReadBuffer(table.heap, ItemPointerGetBlockNumber(&seen->t_self));
    if (lock_row(table, look, LockTupleExclusive) == Locking::free &&
        state_at(&look.row, since) == State::takeable && least_next_token(&look.row)) {
        batch.names[batch.count++] = datumCopy(table.values[col_name], false, -1);
        batch.newest.token = Max(batch.newest.token, look.row.token);
    }
    let_go(look);
}

} // namespace

std::int64_t purge_leases(Table &table, Usec idle) {
    primary_key(table); // without one, a name could stand for a live lease as well
    close_index(table);
    const MemoryContext caller = CurrentMemoryContext;
    const MemoryContext per_batch =
        AllocSetContextCreate(caller, "purge of leases", ALLOCSET_DEFAULT_SIZES);
    Batch batch;
    std::int64_t deleted = 0;
    const TableScanDesc scan = table_beginscan(table.heap, SnapshotSelf, 0, nullptr);
    MemoryContextSwitchTo(per_batch); // the scan outlives it
    for (HeapTuple seen = nullptr; (seen = heap_getnext(scan, ForwardScanDirection)) != nullptr;) {
        CHECK_FOR_INTERRUPTS();
        add_if_idle(table, seen, idle, batch);
        if (batch.count == batch_size) {
            deleted += delete_batch(table, batch);
            MemoryContextReset(per_batch);
        }
    }
    deleted += delete_batch(table, batch);
    table_endscan(scan);
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(per_batch);
    return deleted;
}

} // namespace lease
