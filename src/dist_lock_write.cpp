#include "dist_lock.hpp"

#include "hints.hpp"

namespace lease {

namespace {

// The name did not change and the row is locked: the entry cannot collide. The uniqueness check
// would walk all the dead versions that an old snapshot keeps.
void insert_key_entry(Table &table, HeapTuple fresh) {
    const Relation index = primary_key(table);
    IndexInfo *info = BuildIndexInfo(index);
    Datum key[1] = {0};
    bool null[1] = {false};
    key[0] = heap_getattr(fresh, col_name + 1, RelationGetDescr(table.heap), &null[0]);
    index_insert(index, key, null, &fresh->t_self, table.heap, UNIQUE_CHECK_NO, true, info);
}

// Takes the primary key out of the opened indexes, so that the server's routine passes it by.
void leave_out(ResultRelInfo *target, Oid index) {
    for (int i = 0; i < target->ri_NumIndices; i++) {
        const Relation opened = target->ri_IndexRelationDescs[i];
        if (RelationGetRelid(opened) == index) {
            index_close(opened, RowExclusiveLock);
            target->ri_IndexRelationDescs[i] = nullptr;
        }
    }
}

// Indexes that an administrator added: expressions, predicates and other access methods are the
// executor's business.
void insert_other_entries(Table &table, HeapTuple fresh, server::IndexEntries entries) {
    EState *estate = CreateExecutorState();
    ResultRelInfo *target = makeNode(ResultRelInfo);
    InitResultRelInfo(target, table.heap, 0, nullptr, 0);
    ExecOpenIndices(target, false);
    leave_out(target, RelationGetRelid(primary_key(table)));

    TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(table.heap), &TTSOpsHeapTuple);
    ExecStoreHeapTuple(fresh, slot, false);
    slot->tts_tid = fresh->t_self;
    slot->tts_tableOid = RelationGetRelid(table.heap);
    const List *unsure = server::insert_index_tuples(target, slot, estate, entries);
    if (unsure != NIL)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("\"dist_lock\" cannot have deferrable constraints")));

    ExecDropSingleTupleTableSlot(slot);
    ExecCloseIndices(target);
    FreeExecutorState(estate);
}

void insert_entries(Table &table, HeapTuple fresh, server::IndexEntries entries) {
    if (entries == server::IndexEntries::none)
        return;
    if (entries == server::IndexEntries::all)
        insert_key_entry(table, fresh);
    List *indexes = RelationGetIndexList(table.heap);
    if (list_length(indexes) > 1)
        insert_other_entries(table, fresh, entries);
    list_free(indexes);
}

// One statement, kept as a plan for as long as the table has its name.
struct InsertPlan {
    SPIPlanPtr plan;
    char *statement; // in TopMemoryContext
};

InsertPlan insert_plan;

char *insert_statement(Relation heap) {
    StringInfoData statement;
    initStringInfo(&statement);
    appendStringInfo(&statement, "INSERT INTO %s (",
                     quote_qualified_identifier(get_namespace_name(RelationGetNamespace(heap)),
                                                RelationGetRelationName(heap)));
    for (int i = 0; i < column_count; i++)
        appendStringInfo(&statement, "%s%s", i == 0 ? "" : ", ", column_shapes[i].name);
    appendStringInfoString(&statement, ") VALUES (");
    for (int i = 0; i < column_count; i++)
        appendStringInfo(&statement, "%s$%d", i == 0 ? "" : ", ", i + 1);
    appendStringInfoString(&statement, ") ON CONFLICT (name) DO NOTHING");
    return statement.data;
}

void prepare_insert(Relation heap) {
    char *statement = insert_statement(heap);
    if (insert_plan.plan != nullptr && strcmp(insert_plan.statement, statement) == 0)
        return;

    Oid types[column_count];
    for (int i = 0; i < column_count; i++)
        types[i] = column_shapes[i].type;
    const SPIPlanPtr plan = SPI_prepare(statement, column_count, types);
    if (plan == nullptr)
        elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
    char *kept = MemoryContextStrdup(TopMemoryContext, statement);

    if (insert_plan.plan != nullptr) {
        SPI_freeplan(insert_plan.plan);
        pfree(insert_plan.statement);
    }
    SPI_keepplan(plan);
    insert_plan = {plan, kept};
}

// Runs the statement with what is in the table's room for one row, as the table's owner:
// callers have no rights on the table.
bool run_insert(Table &table) {
    char nulls[column_count];
    for (int i = 0; i < column_count; i++)
        nulls[i] = table.nulls[i] ? 'n' : ' ';

    Oid user = InvalidOid;
    int security = 0;
    GetUserIdAndSecContext(&user, &security);
    SetUserIdAndSecContext(table.heap->rd_rel->relowner,
                           security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
    if (SPI_connect() != SPI_OK_CONNECT)
        elog(ERROR, "SPI_connect failed");
    prepare_insert(table.heap);

    // A snapshot of this moment, so that a row committed a moment ago is a conflict like any
    // other under REPEATABLE READ too.
    const int result = SPI_execute_snapshot(insert_plan.plan, table.values, nulls,
                                            GetLatestSnapshot(), InvalidSnapshot, false, true, 0);
    if (result != SPI_OK_INSERT && result != SPI_OK_REWRITTEN)
        elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
    const bool inserted = SPI_processed == 1;
    SPI_finish();
    SetUserIdAndSecContext(user, security);
    CommandCounterIncrement();
    return inserted;
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

void change(Table &table, std::string_view name, Look &look, const Row &next) {
    CheckCmdReplicaIdentity(table.heap, CMD_UPDATE);
    put_row(table, next);
    HeapTuple fresh = heap_modify_tuple(&look.tuple, RelationGetDescr(table.heap), table.values,
                                        table.nulls, table.replaced);

    ItemPointerData old_place = look.tuple.t_self;
    server::IndexEntries entries = server::IndexEntries::none;
    const TM_Result result =
        server::update_tuple(table.heap, &old_place, fresh, GetCurrentCommandId(true), &entries);
    if (result != TM_Ok)
        elog(ERROR, "locked row of a lease could not be updated: %d", (int)result);
    insert_entries(table, fresh, entries);
    remember_hint(name, fresh->t_self);
    let_go(look);
    // What follows in this transaction, in the same statement even, builds on this version.
    CommandCounterIncrement();
}

bool insert(Table &table, std::string_view name, const Row &row) {
    put_row(table, row);
    table.values[col_name] = text_datum(name);
    table.nulls[col_name] = false;
    const bool inserted = run_insert(table);

    if (inserted)
        check_inserted(table, name, row);
    return inserted;
}

} // namespace lease
