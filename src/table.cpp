#include "table.hpp"

#include "hints.hpp"

namespace lease {

namespace {

// Where the table was last found. DDL of any session clears `valid`; nothing else is done in
// the callback, since it runs wherever the server reads invalidation messages.
struct Place {
    bool valid;
    std::uint64_t age;
    Oid schema;
    Oid relation;
    Oid sequence;
    Oid sessions;
};

Place place;

void on_relation_change(Datum, Oid relation) {
    if (relation == InvalidOid || relation == place.relation || relation == place.sequence)
        place.valid = false;
}

[[noreturn]] void altered(const char *detail) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("table \"dist_lock\" is not as extension \"lease\" made it"),
                    errdetail_internal("%s", detail)));
}

// What the script that last ran calls itself; null if there is no such extension.
char *script_version(Oid extension) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(extension));
    const Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
    const SysScanDesc scan =
        systable_beginscan(extensions, ExtensionOidIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    char *version = nullptr;
    bool is_null = true;
    if (HeapTupleIsValid(tuple)) {
        const Datum value = heap_getattr(tuple, Anum_pg_extension_extversion,
                                         RelationGetDescr(extensions), &is_null);
        version = TextDatumGetCString(value);
    }
    systable_endscan(scan);
    table_close(extensions, AccessShareLock);
    return version;
}

// A library may be newer or older than the script that made what it works on: packages are
// upgraded before databases are, and sessions stay. It may do so within one major version.
void check_version(Oid function) {
    const char *script = script_version(getExtensionOfObject(ProcedureRelationId, function));
    if (script != nullptr && strncmp(script, LEASE_VERSION, strcspn(LEASE_VERSION, ".") + 1) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("extension \"lease\" is version %s in this database, but its library is "
                        "version %s",
                        script, LEASE_VERSION),
                 errhint("If the library is newer, run ALTER EXTENSION lease UPDATE. If it is "
                         "older, install the newer one and begin a new session; if the server "
                         "preloads it, restart the server.")));
}

Oid find_relation(const char *name, Oid schema, Oid function) {
    const Oid relation = get_relname_relid(name, schema);
    if (!OidIsValid(relation))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("relation \"%s\" of extension \"lease\" does not exist", name),
                        errhint("It was renamed, moved or dropped; the functions of the "
                                "extension look for it in their own schema.")));

    // Whoever may create objects in the schema could put one of this name in its place.
    const Oid extension = getExtensionOfObject(RelationRelationId, relation);
    if (!OidIsValid(extension) || extension != getExtensionOfObject(ProcedureRelationId, function))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("relation \"%s\" does not belong to extension \"lease\"", name)));
    return relation;
}

void check_shape(Relation heap) {
    const FormData_pg_class *form = heap->rd_rel;
    if (form->relkind != RELKIND_RELATION || form->relam != HEAP_TABLE_AM_OID)
        altered("It is not a heap table.");
    if (form->relpersistence != RELPERSISTENCE_PERMANENT)
        altered("It is unlogged: a crash would forget live leases.");

    const TupleDesc desc = RelationGetDescr(heap);
    for (int i = 0; i < column_count; i++) {
        const ColumnShape &shape = column_shapes[i];
        const FormData_pg_attribute *column = i < desc->natts ? TupleDescAttr(desc, i) : nullptr;
        if (column == nullptr || column->attisdropped || column->atttypid != shape.type ||
            strcmp(NameStr(column->attname), shape.name) != 0)
            altered(
                psprintf("Column \"%s\" was renamed, dropped or has another type.", shape.name));
    }
}

// Tokens rise over all sessions only if each takes the next one.
void check_sequence(Oid sequence) {
    HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        altered("\"dist_lock_token\" is not a sequence.");
    const auto *form = (const FormData_pg_sequence *)GETSTRUCT(tuple);
    const bool rises = form->seqincrement == 1 && form->seqcache == 1 && !form->seqcycle;
    ReleaseSysCache(tuple);
    if (!rises)
        altered("\"dist_lock_token\" has another INCREMENT, CACHE or CYCLE.");
}

// Whether an index is the one of the script: of the bound rows, all of them, by session_pid.
bool is_session_index(Relation heap, Relation index) {
    const FormData_pg_index *form = index->rd_index;
    const List *predicate = RelationGetIndexPredicate(index);
    if (form->indrelid != RelationGetRelid(heap) || !form->indisvalid || !form->indisready ||
        form->indisunique || form->indnatts != 1 || index->rd_rel->relam != BTREE_AM_OID ||
        form->indkey.values[0] != col_session_pid + 1 || list_length(predicate) != 1 ||
        !IsA(linitial(predicate), NullTest))
        return false;
    const NullTest *test = linitial_node(NullTest, predicate);
    return test->nulltesttype == IS_NOT_NULL && IsA(test->arg, Var) &&
           castNode(Var, test->arg)->varattno == col_session_pid + 1;
}

// The session index of an open table, or invalid: another one of its name is somebody else's.
Oid find_session_index(Relation heap) {
    Oid found = InvalidOid;
    List *indexes = RelationGetIndexList(heap);
    ListCell *cell = nullptr;
    foreach (cell, indexes) {
        const Relation index = index_open(lfirst_oid(cell), AccessShareLock);
        if (is_session_index(heap, index))
            found = RelationGetRelid(index);
        index_close(index, AccessShareLock);
    }
    list_free(indexes);
    return found;
}

void find_place(Oid schema, Oid function) {
    place.valid = false;
    place.age++;
    forget_hints();
    place.schema = schema;
    check_version(function);
    place.relation = find_relation("dist_lock", schema, function);
    place.sequence = find_relation("dist_lock_token", schema, function);
    place.valid = true;
}

bool still_there(Relation heap, Oid schema) {
    return RelationGetNamespace(heap) == schema &&
           strcmp(RelationGetRelationName(heap), "dist_lock") == 0;
}

// Opens the table where it was last found; gives null if DDL came in between.
Relation open_in_place(Oid schema, Oid function) {
    const bool known = place.valid && place.schema == schema;
    if (!known)
        find_place(schema, function);

    const Relation heap = try_table_open(place.relation, AccessShareLock);
    // Taking the lock has read what other sessions changed until now.
    if (heap == nullptr || !place.valid || (!known && !still_there(heap, schema))) {
        if (heap != nullptr)
            table_close(heap, AccessShareLock);
        place.valid = false;
        return nullptr;
    }
    if (!known) {
        place.valid = false; // for good, if the check fails
        check_shape(heap);
        check_sequence(place.sequence);
        place.valid = true;
        place.sessions = find_session_index(heap);
    }
    return heap;
}

} // namespace

void watch_catalog_changes() {
    CacheRegisterRelcacheCallback(on_relation_change, (Datum)0);
}

std::uint64_t table_age() {
    return place.age;
}

Oid find_table(Oid function) {
    const Oid schema = OidIsValid(function) ? get_func_namespace(function) : InvalidOid;
    return OidIsValid(schema) ? get_relname_relid("dist_lock", schema) : InvalidOid;
}

Table open_table(Oid function) {
    const Oid schema = get_func_namespace(function);
    if (!OidIsValid(schema))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("the called function of extension \"lease\" was dropped")));

    Table table = {};
    while ((table.heap = open_in_place(schema, function)) == nullptr)
        CHECK_FOR_INTERRUPTS();

    const int columns = RelationGetDescr(table.heap)->natts;
    table.sequence = place.sequence;
    // Of an index that gets its name back the server tells us nothing.
    if (!OidIsValid(place.sessions))
        place.sessions = get_relname_relid("dist_lock_session", schema);
    table.sessions = place.sessions;
    table.values = (Datum *)palloc(columns * sizeof(Datum));
    table.nulls = (bool *)palloc(columns * sizeof(bool));
    return table;
}

void close_index(Table &table) {
    if (table.index != nullptr)
        index_close(table.index, AccessShareLock);
    table.index = nullptr;
}

void close_table(Table &table) {
    close_index(table);
    if (table.waited && !table.changes)
        UnlockRelationOid(RelationGetRelid(table.heap), RowExclusiveLock);
    table_close(table.heap, table.changes ? NoLock : AccessShareLock);
}

Relation open_session_index(const Table &table) {
    if (!OidIsValid(table.sessions))
        altered("Its index \"dist_lock_session\" is gone.");
    return index_open(table.sessions, AccessShareLock);
}

Relation primary_key(Table &table) {
    if (table.index != nullptr)
        return table.index;

    const Oid index = server::primary_key_of(table.heap);
    if (!OidIsValid(index))
        altered("It has no primary key, or a deferrable one.");
    table.index = index_open(index, AccessShareLock);
    if (table.index->rd_index->indnatts != 1 ||
        table.index->rd_index->indkey.values[0] != col_name + 1 ||
        table.index->rd_indcollation[0] != C_COLLATION_OID)
        altered("Its primary key is not the name, compared byte by byte.");
    return table.index;
}

} // namespace lease
