// The trigger that keeps writes out of a table unless their transaction passed a fence.

#include "fence.hpp"

extern "C" {
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"

#pragma GCC visibility push(default)
PG_FUNCTION_INFO_V1(lease_fenced);
#pragma GCC visibility pop
}

namespace lease {

namespace {

const TriggerData *trigger_data(FunctionCallInfo fcinfo) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("lease_fenced() must be called as a trigger")));
    const auto *data = (const TriggerData *)fcinfo->context;
    if (data->tg_trigger->tgnargs != 1)
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("trigger \"%s\" must name one lease", data->tg_trigger->tgname),
                        errhint("Say EXECUTE FUNCTION lease_fenced('name of the lease').")));
    // Whatever such a trigger returns, the server takes the write for done.
    if (TRIGGER_FIRED_INSTEAD(data->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("trigger \"%s\" must not be INSTEAD OF", data->tg_trigger->tgname),
                        errhint("Put it on the tables below the view.")));
    return data;
}

void warn_if_open_below(const TriggerData *data) {
    const Relation table = data->tg_relation;
    // relhassubclass stays set for a while after the last child was dropped.
    if (!TRIGGER_FIRED_FOR_STATEMENT(data->tg_event) || !table->rd_rel->relhassubclass ||
        find_inheritance_children(RelationGetRelid(table), NoLock) == NIL)
        return;
    ereport(WARNING,
            (errmsg("trigger \"%s\" does not guard direct writes to the partitions or children "
                    "of \"%s\"",
                    data->tg_trigger->tgname, RelationGetRelationName(table)),
             table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE
                 ? errhint("Make it FOR EACH ROW, which partitions inherit.")
                 : errhint("Give each child a trigger of its own.")));
}

void refuse_unless_fenced(const TriggerData *data) {
    const char *name = data->tg_trigger->tgargs[0];
    if (!has_passed_fence(name))
        ereport(ERROR, (errcode(sqlstate_lease),
                        errmsg("table \"%s\" can only be written behind the fence of lease \"%s\"",
                               RelationGetRelationName(data->tg_relation), name),
                        errhint("Call lease_fence() with the tenure's token before, in the same "
                                "transaction.")));
}

// What a trigger returns to let things be.
HeapTuple unchanged(const TriggerData *data) {
    if (TRIGGER_FIRED_FOR_STATEMENT(data->tg_event) || TRIGGER_FIRED_AFTER(data->tg_event))
        return nullptr;
    return TRIGGER_FIRED_BY_UPDATE(data->tg_event) ? data->tg_newtuple : data->tg_trigtuple;
}

} // namespace

} // namespace lease

Datum lease_fenced(PG_FUNCTION_ARGS) {
    const TriggerData *data = lease::trigger_data(fcinfo);
    lease::warn_if_open_below(data);
    lease::refuse_unless_fenced(data);
    PG_RETURN_POINTER(lease::unchanged(data));
}
