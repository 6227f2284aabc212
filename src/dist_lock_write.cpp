#include <utility>

#include "dist_lock.hpp"
#include "hints.hpp"
#include "statement.hpp"

namespace lease {

namespace {

// An entry in an index of our own. There is nothing to check: a name did not change and its row
// is locked, a session may have many. The uniqueness check would walk all the dead versions that
// an old snapshot keeps.
void insert_own_entry(Table &table, Oid index_id, Column column, HeapTuple fresh) {
    Datum key[1] = {0};
    bool null[1] = {false};
    key[0] = heap_getattr(fresh, column + 1, RelationGetDescr(table.heap), &null[0]);
    if (null[0]) // of a lease that is bound to no session: not in that index
        return;
    const Relation index = index_open(index_id, RowExclusiveLock);
    index_insert(index, key, null, &fresh->t_self, table.heap, UNIQUE_CHECK_NO, column == col_name,
                 BuildIndexInfo(index));
    index_close(index, RowExclusiveLock);
}

// Moves one of our own behind the opened indexes that the server's routine goes over.
void leave_out(ResultRelInfo *target, Oid index) {
    for (int i = 0; i < target->ri_NumIndices; i++)
        if (RelationGetRelid(target->ri_IndexRelationDescs[i]) == index) {
            const int last = --target->ri_NumIndices;
            std::swap(target->ri_IndexRelationDescs[i], target->ri_IndexRelationDescs[last]);
            std::swap(target->ri_IndexRelationInfo[i], target->ri_IndexRelationInfo[last]);
        }
}

// Indexes that an administrator added: expressions, predicates and other access methods are the
// executor's business. Their functions run as the table's owner, as in all upkeep of indexes.
void insert_other_entries(Table &table, HeapTuple fresh, server::IndexEntries entries) {
    const Identity caller = become_owner_of(table.heap, SECURITY_RESTRICTED_OPERATION);
    EState *estate = CreateExecutorState();
    ResultRelInfo *target = makeNode(ResultRelInfo);
    InitResultRelInfo(target, table.heap, 0, nullptr, 0);
    ExecOpenIndices(target, false);
    const int opened = target->ri_NumIndices;
    leave_out(target, RelationGetRelid(primary_key(table)));
    leave_out(target, table.sessions);

    TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(table.heap), &TTSOpsHeapTuple);
    ExecStoreHeapTuple(fresh, slot, false);
    slot->tts_tid = fresh->t_self;
    slot->tts_tableOid = RelationGetRelid(table.heap);
    const List *unsure = server::insert_index_tuples(target, slot, estate, entries);
    if (unsure != NIL)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("\"dist_lock\" cannot have deferrable constraints")));

    ExecDropSingleTupleTableSlot(slot);
    target->ri_NumIndices = opened; // the server closes all of them
    ExecCloseIndices(target);
    FreeExecutorState(estate);
    become_again(caller);
}

void insert_entries(Table &table, HeapTuple fresh, server::IndexEntries entries) {
    if (entries == server::IndexEntries::none)
        return;
    const Oid primary = RelationGetRelid(primary_key(table));
    bool others = false;
    List *indexes = RelationGetIndexList(table.heap);
    ListCell *cell = nullptr;
    foreach (cell, indexes) {
        const Oid index = lfirst_oid(cell);
        if (index != primary && index != table.sessions)
            others = true;
        else if (entries == server::IndexEntries::all)
            insert_own_entry(table, index, index == primary ? col_name : col_session_pid, fresh);
    }
    list_free(indexes);
    if (others)
        insert_other_entries(table, fresh, entries);
}

const char *insert_text(Relation heap) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "INSERT INTO %s (", qualified_name(heap));
    for (int i = 0; i < column_count; i++)
        appendStringInfo(&text, "%s%s", i == 0 ? "" : ", ", column_shapes[i].name);
    appendStringInfoString(&text, ") VALUES (");
    for (int i = 0; i < column_count; i++)
        appendStringInfo(&text, "%s$%d", i == 0 ? "" : ", ", i + 1);
    appendStringInfoString(&text, ") ON CONFLICT (name) DO NOTHING");
    return text.data;
}

// Inserts what is in the table's room for one row, if there is none of its name.
bool insert_if_missing(Table &table) {
    static Statement statement;
    Oid types[column_count];
    char nulls[column_count];
    for (int i = 0; i < column_count; i++) {
        types[i] = column_shapes[i].type;
        nulls[i] = table.nulls[i] ? 'n' : ' ';
    }
    return run_as_owner(statement, table.heap, insert_text(table.heap),
                        {column_count, types, table.values, nulls, false}) == 1;
}

// Triggers and rules of an administrator may have made something else of the row.
void check_inserted(Table &table, std::string_view name, const Row &row) {
    Look look = find(table, name);
    const Row *found = look.row_if_any();
    if (found == nullptr || found->owner != row.owner || found->expiry != row.expiry ||
        found->token != row.token)
        ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
                        errmsg("the new row of a lease was changed on its way"),
                        errhint("Look for triggers and rules on \"dist_lock\".")));
    let_go(look);
}

} // namespace

bool change(Table &table, std::string_view name, Look &look, const Row &next) {
    CheckCmdReplicaIdentity(table.heap, CMD_UPDATE);
    put_row(table, next); // over what was read last
    HeapTuple fresh = heap_form_tuple(RelationGetDescr(table.heap), table.values, table.nulls);

    ItemPointerData old_place = look.tuple.t_self;
    server::IndexEntries entries = server::IndexEntries::none;
    const TM_Result result = server::update_tuple(table.heap, &old_place, fresh,
                                                  GetCurrentCommandId(true), look.locked, &entries);
    let_go(look); // no pin while functions of an administrator's indexes run
    if (result != TM_Ok) {
        if (look.locked)
            elog(ERROR, "locked row of a lease could not be updated: %d", (int)result);
        leave_unchanged(table, look);
        return false;
    }
    table.changes = true;
    insert_entries(table, fresh, entries);
    remember_hint(name, fresh->t_self);
    // What follows in this transaction, in the same statement even, builds on this version.
    CommandCounterIncrement();
    return true;
}

bool insert(Table &table, std::string_view name, const Row &row) {
    put_row(table, row);
    table.values[col_name] = text_datum(name);
    table.nulls[col_name] = false;
    close_index(table);
    const bool inserted = insert_if_missing(table);

    if (inserted)
        check_inserted(table, name, row);
    return inserted;
}

} // namespace lease
