#include <cstdint>

#include "statement.hpp"
#include "table.hpp"

namespace lease {

namespace {

void prepare(Statement &statement, const char *text, const Parameters &parameters) {
    // The server does not notice by itself: of a plan that a rule made empty it knows no table.
    if (statement.plan != nullptr && statement.age == table_age() &&
        strcmp(statement.text, text) == 0)
        return;
    const SPIPlanPtr plan =
        SPI_prepare_cursor(text, parameters.count, const_cast<Oid *>(parameters.types),
                           parameters.plan_every_time ? CURSOR_OPT_CUSTOM_PLAN : 0);
    if (plan == nullptr)
        elog(ERROR, "SPI_prepare_cursor failed: %s", SPI_result_code_string(SPI_result));
    char *kept = MemoryContextStrdup(TopMemoryContext, text);

    // A trigger may have called us while the plan runs; then it is left to the server's memory.
    if (statement.plan != nullptr && statement.running == 0) {
        SPI_freeplan(statement.plan);
        pfree(statement.text);
    }
    SPI_keepplan(plan);
    statement.plan = plan;
    statement.text = kept;
    statement.age = table_age();
}

} // namespace

Identity become_owner_of(Relation table, int restrictions) {
    Identity identity = {};
    identity.settings = NewGUCNestLevel();
    set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
                      GUC_ACTION_SAVE, true, 0, false);
    GetUserIdAndSecContext(&identity.user, &identity.security);
    SetUserIdAndSecContext(table->rd_rel->relowner,
                           identity.security | SECURITY_LOCAL_USERID_CHANGE | restrictions);
    return identity;
}

void become_again(const Identity &identity) {
    SetUserIdAndSecContext(identity.user, identity.security);
    AtEOXact_GUC(false, identity.settings);
}

std::uint64_t run_as_owner(Statement &statement, Relation table, const char *text,
                           const Parameters &parameters) {
    // Row security is the administrator's business with others, not with the extension. No
    // restricted operation: deferred triggers could not fire after it.
    const Identity caller = become_owner_of(table, SECURITY_NOFORCE_RLS);
    if (SPI_connect() != SPI_OK_CONNECT)
        elog(ERROR, "SPI_connect failed");
    if (statement.transaction != server::local_transaction_id())
        statement.running = 0;
    statement.transaction = server::local_transaction_id();
    prepare(statement, text, parameters);
    statement.running++;
    // A snapshot of this moment, and not the transaction's: under REPEATABLE READ too, a row
    // committed a moment ago counts, and who waits keeps none.
    const int result = SPI_execute_snapshot(statement.plan, parameters.values, parameters.nulls,
                                            GetCatalogSnapshot(RelationGetRelid(table)),
                                            InvalidSnapshot, false, true, 0);
    if (result < 0)
        elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
    statement.running--;
    const std::uint64_t changed = SPI_processed;
    SPI_finish();
    become_again(caller);
    CommandCounterIncrement();
    return changed;
}

const char *qualified_name(Relation table) {
    return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
                                      RelationGetRelationName(table));
}

} // namespace lease
