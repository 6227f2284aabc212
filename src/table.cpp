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

void find_place(Oid schema, Oid function) {
    place.valid = false;
    place.age++;
    forget_hints();
    place.schema = schema;
    place.relation = find_relation("dist_lock", schema, function);
    place.sequence = find_relation("dist_lock_token", schema, function);
    place.sessions = get_relname_relid("dist_lock_session", schema);
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
        place.valid = true;
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
    table.sessions = place.sessions;
    table.values = (Datum *)palloc(columns * sizeof(Datum));
    table.nulls = (bool *)palloc(columns * sizeof(bool));
    table.replaced = (bool *)palloc0(columns * sizeof(bool));
    return table;
}

void close_index(Table &table) {
    if (table.index != nullptr)
        index_close(table.index, AccessShareLock);
    table.index = nullptr;
}

void close_table(Table &table) {
    close_index(table);
    table_close(table.heap, AccessShareLock);
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
    if (table.index->rd_index->indnkeyatts != 1 ||
        table.index->rd_index->indkey.values[0] != col_name + 1 ||
        table.index->rd_indcollation[0] != C_COLLATION_OID)
        altered("Its primary key is not the name, compared byte by byte.");
    return table.index;
}

} // namespace lease
