// What SQL calls: arguments in, one operation, result or error out.

#include <algorithm>

#include "arguments.hpp"
#include "binding.hpp"
#include "ending.hpp"
#include "fence.hpp"
#include "operation.hpp"
#include "purge.hpp"
#include "reasons.hpp"

extern "C" {
#pragma GCC visibility push(default)
PG_FUNCTION_INFO_V1(lease_try);
PG_FUNCTION_INFO_V1(lease_try_any);
PG_FUNCTION_INFO_V1(lease_renew);
PG_FUNCTION_INFO_V1(lease_renew_all);
PG_FUNCTION_INFO_V1(lease_release);
PG_FUNCTION_INFO_V1(lease_token);
PG_FUNCTION_INFO_V1(lease_fence);
PG_FUNCTION_INFO_V1(lease_attach);
PG_FUNCTION_INFO_V1(lease_detach);
PG_FUNCTION_INFO_V1(lease_break);
PG_FUNCTION_INFO_V1(lease_purge);
#pragma GCC visibility pop
}

namespace lease {

namespace {

// Opens the table for a function that may write: it fails in a read-only transaction and in a
// parallel query (below a function that says it is safe there) even if there would be nothing to
// write this time. A try mostly only looks, others mostly write.
Table open_for_writing(FunctionCallInfo fcinfo, const char *function,
                       LOCKMODE lock = RowExclusiveLock) {
    PreventCommandIfReadOnly(function);
    PreventCommandIfParallelMode(function);
    return open_table(fcinfo->flinfo->fn_oid, lock);
}

void warn_nothing_released(std::string_view name, const Answer &answer, const Claim &claim) {
    ereport(WARNING,
            (errmsg("lease \"%s\" is %s", pnstrdup(name.data(), name.size()), condition_of(answer)),
             errdetail_internal("%s", reason_of(answer, claim))));
}

// The first of the names that a try gets, in this order: what the owner has already, then what
// is free, from a start of the owner's own so that owners do not all meet at the first.
int try_any(Table &table, const Names &names, std::string_view owner, Usec ttl) {
    auto *free = (bool *)palloc0(names.count * sizeof(bool));
    for (int i = 0; i < names.count; i++) {
        CHECK_FOR_INTERRUPTS();
        const Prospect prospect = prospect_of_try(table, names.names[i], owner);
        if (prospect == Prospect::own && try_lease(table, names.names[i], owner, ttl))
            return i;
        free[i] = prospect == Prospect::free;
    }
    const uint32 start = hash_bytes((const unsigned char *)owner.data(), (int)owner.size());
    for (int i = 0; i < names.count; i++) {
        const int slot = (int)((start + (uint32)i) % (uint32)names.count);
        if (free[slot] && try_lease(table, names.names[slot], owner, ttl))
            return slot;
    }
    return -1;
}

// The places of the names in name order, so that two sessions lock the same rows in one order;
// of equal names the first.
int *distinct_in_order(const Names &names, int *count) {
    int *places = (int *)palloc(names.count * sizeof(int));
    for (int i = 0; i < names.count; i++)
        places[i] = i;
    const std::string_view *name = names.names;
    std::sort(places, places + names.count, [name](int a, int b) noexcept {
        const int order = name[a].compare(name[b]);
        return order != 0 ? order < 0 : a < b;
    });
    const int *end = std::unique(places, places + names.count,
                                 [name](int a, int b) noexcept { return name[a] == name[b]; });
    *count = (int)(end - places);
    return places;
}

// Renews what it can, and returns for each name whether it did.
bool *renew_all(Table &table, const Names &names, const Claim &claim, Usec ttl) {
    auto *renewed = (bool *)palloc0(names.count * sizeof(bool));
    int count = 0;
    const int *places = distinct_in_order(names, &count);

    const MemoryContext caller = CurrentMemoryContext;
    const MemoryContext per_name =
        AllocSetContextCreate(caller, "renewal of one lease", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(per_name);
    for (int i = 0; i < count; i++) {
        Answer answer = renew_lease(table, names.names[places[i]], claim, ttl);
        renewed[places[i]] = answer.standing == Standing::holder;
        let_go(answer.look);
        MemoryContextReset(per_name);
    }
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(per_name);
    return renewed;
}

} // namespace

} // namespace lease

using namespace lease;

Datum lease_try(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const std::string_view owner = text_argument(fcinfo, 1, "owner");
    const Usec ttl = ttl_argument(fcinfo, 2);

    Table table = open_for_writing(fcinfo, "lease_try()", AccessShareLock);
    const bool held = try_lease(table, name, owner, ttl).has_value();
    close_table(table);
    PG_RETURN_BOOL(held);
}

Datum lease_try_any(PG_FUNCTION_ARGS) {
    const Names names = names_argument(fcinfo, 0);
    const std::string_view owner = text_argument(fcinfo, 1, "owner");
    const Usec ttl = ttl_argument(fcinfo, 2);

    Table table = open_for_writing(fcinfo, "lease_try_any()", AccessShareLock);
    const int slot = try_any(table, names, owner, ttl);
    close_table(table);
    if (slot < 0)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(text_datum(names.names[slot]));
}

Datum lease_renew(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const Claim claim{text_argument(fcinfo, 1, "owner"), token_argument(fcinfo, 3), true};
    const Usec ttl = ttl_argument(fcinfo, 2);

    Table table = open_for_writing(fcinfo, "lease_renew()");
    Answer answer = renew_lease(table, name, claim, ttl);
    let_go(answer.look);
    close_table(table);
    PG_RETURN_BOOL(answer.standing == Standing::holder);
}

Datum lease_renew_all(PG_FUNCTION_ARGS) {
    const Names names = names_argument(fcinfo, 0);
    const Claim claim{text_argument(fcinfo, 1, "owner"), std::nullopt, true};
    const Usec ttl = ttl_argument(fcinfo, 2);

    Table table = open_for_writing(fcinfo, "lease_renew_all()");
    const bool *renewed = renew_all(table, names, claim, ttl);
    close_table(table);

    auto *result = (Datum *)palloc(names.count * sizeof(Datum));
    int count = 0;
    for (int i = 0; i < names.count; i++)
        if (renewed[i])
            result[count++] = text_datum(names.names[i]);
    PG_RETURN_ARRAYTYPE_P(construct_array(result, count, TEXTOID, -1, false, TYPALIGN_INT));
}

Datum lease_release(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const Claim claim{text_argument(fcinfo, 1, "owner"), token_argument(fcinfo, 3), true};
    const std::optional<Usec> keep = keep_argument(fcinfo, 2);

    Table table = open_for_writing(fcinfo, "lease_release()");
    Answer answer = release_lease(table, name, claim, keep);
    const bool released = answer.standing == Standing::holder;
    if (!released)
        warn_nothing_released(name, answer, claim);
    let_go(answer.look);
    close_table(table);
    PG_RETURN_BOOL(released);
}

Datum lease_token(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const Claim claim{text_argument(fcinfo, 1, "owner"), std::nullopt, true};

    Table table = open_table(fcinfo->flinfo->fn_oid, AccessShareLock);
    Answer answer = look_at_lease(table, name, claim);
    let_go(answer.look);
    close_table(table);
    if (answer.standing != Standing::holder)
        PG_RETURN_NULL();
    PG_RETURN_INT64(answer.look.row.token);
}

Datum lease_fence(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const std::int64_t token = required_token_argument(fcinfo, 1);

    // Its locks cannot be had on a standby; those of a parallel worker end with it.
    PreventCommandDuringRecovery("lease_fence()");
    PreventCommandIfParallelMode("lease_fence()");
    Table table = open_table(fcinfo->flinfo->fn_oid, AccessShareLock);
    pass_fence(table, name, token);
    close_table(table);
    PG_RETURN_VOID();
}

Datum lease_attach(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const Claim claim{text_argument(fcinfo, 1, "owner"), std::nullopt, true};

    Table table = open_for_writing(fcinfo, "lease_attach()");
    // Without it no keeper would find what is bound.
    index_close(open_session_index(table), AccessShareLock);
    const bool attached = attach_lease(table, fcinfo->flinfo->fn_oid, name, claim);
    close_table(table);
    PG_RETURN_BOOL(attached);
}

Datum lease_detach(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");
    const Claim claim{text_argument(fcinfo, 1, "owner"), std::nullopt, true};

    Table table = open_for_writing(fcinfo, "lease_detach()");
    const bool detached = detach_lease(table, name, claim);
    close_table(table);
    PG_RETURN_BOOL(detached);
}

Datum lease_break(PG_FUNCTION_ARGS) {
    const std::string_view name = text_argument(fcinfo, 0, "name");

    Table table = open_for_writing(fcinfo, "lease_break()");
    const bool broken = break_lease(table, name);
    close_table(table);
    PG_RETURN_BOOL(broken);
}

Datum lease_purge(PG_FUNCTION_ARGS) {
    const Usec idle = wait_argument(fcinfo, 0, "idle");

    Table table = open_for_writing(fcinfo, "lease_purge()");
    const std::int64_t deleted = purge_leases(table, idle);
    close_table(table);
    PG_RETURN_INT64(deleted);
}
