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
    if (statement.plan != nullptr && !statement.running) {
        SPI_freeplan(statement.plan);
        pfree(statement.text);
    }
    SPI_keepplan(plan);
    statement = {plan, kept, table_age(), false};
}

} // namespace

Identity become_owner_of(Relation table) {
    Identity identity = {};
    GetUserIdAndSecContext(&identity.user, &identity.security);
    SetUserIdAndSecContext(table->rd_rel->relowner,
                           identity.security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
    return identity;
}

void become_again(Identity identity) {
    SetUserIdAndSecContext(identity.user, identity.security);
}

std::uint64_t run_as_owner(Statement &statement, Relation table, const char *text,
                           const Parameters &parameters) {
    const Identity caller = become_owner_of(table);
    if (SPI_connect() != SPI_OK_CONNECT)
        elog(ERROR, "SPI_connect failed");
    prepare(statement, text, parameters);
    statement.running = true;
    // A snapshot of this moment, and not the transaction's: under REPEATABLE READ too, a row
    // committed a moment ago counts, and who waits keeps none.
    const int result = SPI_execute_snapshot(statement.plan, parameters.values, parameters.nulls,
                                            GetCatalogSnapshot(RelationGetRelid(table)),
                                            InvalidSnapshot, false, true, 0);
    if (result < 0)
        elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
    statement.running = false;
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
