#include "care.hpp"

#include <algorithm>

#include "binding.hpp"
#include "durability.hpp"
#include "failures.hpp"
#include "gate.hpp"
#include "wait.hpp"
#include "wake.hpp"

extern "C" {
#include "postmaster/interrupt.h"
}

namespace lease {

namespace {

constexpr int batch_size = 500; // rows a transaction
constexpr Usec pause_for_busy = 50000;

// Names outlive the transactions of a round.
struct Due {
    bool failed; // the last time
    size_t length;
    char name[longest_name];

    std::string_view view() const { return {name, length}; }
};

struct Plan {
    Oid relation;
    Oid function;
    Usec now;
    Round round;
    int count;
    int room;
    Due *due; // in the memory context of the round
};

// A tenure whose role was dropped is nobody's: it may run out.
bool has_role(const Row &row) {
    return !row.granted_to ||
           OidIsValid(get_role_oid(pnstrdup(row.granted_to->data(), row.granted_to->size()), true));
}

// A ttl made by hand may lead nowhere.
bool can_be_renewed(const Row &row, Usec now) {
    return instant_after(now, *row.ttl) && has_role(row);
}

struct Wanted {
    Care care;
    Usec next; // when it wants care again, if it wants none now
};

Wanted wanted_care(const Row &row, Usec now) {
    const Care care = care_for(row, session_lives(row), now);
    if (care == Care::renew && !can_be_renewed(row, now))
        return {Care::none, *row.expiry};
    return {care, next_care(row).value_or(PG_INT64_MAX)};
}

void plan_row(const Row &row, std::string_view name, void *arg) {
    auto &plan = *(Plan *)arg;
    if (name.size() > longest_name) // made by hand: the functions know no such name
        return;
    plan.round.anything_bound = true;
    const Wanted wanted = wanted_care(row, plan.now);
    if (wanted.care == Care::none) {
        plan.round.next = Min(plan.round.next, wanted.next);
        return;
    }
    const std::optional<Usec> retry = retry_of(name, plan.now);
    if (retry > plan.now) {
        plan.round.next = Min(plan.round.next, *retry);
        return;
    }
    if (plan.count == plan.room) {
        plan.room *= 2;
        plan.due = (Due *)repalloc_huge(plan.due, plan.room * sizeof(Due));
    }
    Due &due = plan.due[plan.count++];
    due.failed = retry.has_value();
    due.length = name.size();
    memcpy(due.name, name.data(), name.size());
}

// False: it is locked, or not there any more. The lock that is taken here lets nobody in who would
// make a later step of the transaction wait.
bool begin_visit(Oid relation, Oid function, Table *table) {
    if (!ConditionalLockRelationOid(relation, RowExclusiveLock) || find_table(function) != relation)
        return false;
    PushActiveSnapshot(GetTransactionSnapshot());
    *table = open_table(function, RowExclusiveLock);
    return true;
}

void end_visit(Table &table) {
    close_table(table);
    PopActiveSnapshot();
}

// What to do to the free row, by the care that it wants. False: somebody was faster.
bool give_care(Table &table, std::string_view name, Look &look, Care care, Usec now) {
    if (care == Care::unbind)
        return change(table, name, look, unbound(look.row));
    if (care == Care::release) {
        wake_at_commit(gate_tag(name));
        return change(table, name, look, ended(look.row, Ending::released, now));
    }
    require_durable_commit();
    const Usec expiry = *instant_after(now, *look.row.ttl);
    return change(table, name, look, extended(look.row, *look.row.ttl, expiry, now));
}

// False: somebody is busy on the lease.
bool care_behind_gate(Table &table, std::string_view name, Look &look, Care care) {
    if (lock_row(table, look) != Locking::free)
        return false;
    const Usec now = read_clock();
    if (!look.row.session_pid || wanted_care(look.row, now).care != care)
        return false;
    return give_care(table, name, look, care, now);
}

bool care_for_lease(Table &table, std::string_view name) {
    Look look = find(table, name);
    const Row *row = look.row_if_any();
    const Care care =
        row != nullptr && row->session_pid ? wanted_care(*row, read_clock()).care : Care::none;
    bool done = true;
    if (care == Care::release) {
        const LOCKTAG gate = gate_tag(name);
        done = try_lock(gate, gate_alone);
        if (done && !(done = care_behind_gate(table, name, look, care)))
            give_back(gate, gate_alone);
    } else if (care != Care::none) {
        done = care_behind_gate(table, name, look, care);
    }
    let_go(look);
    return done;
}

// Cares for a batch in one transaction. False: somebody was busy on one of them.
bool care_for_batch(const Plan &plan, const Due *due, int count) {
    Table table = {};
    StartTransactionCommand();
    bool done = begin_visit(plan.relation, plan.function, &table);
    if (done) {
        for (int i = 0; i < count; i++)
            done &= care_for_lease(table, due[i].view());
        end_visit(table);
    }
    CommitTransactionCommand();
    return done;
}

// The same; an error ends that transaction only, and is logged if one row is to blame.
enum class Outcome { done, busy, failed };
Outcome try_batch(const Plan &plan, const Due *due, int count) {
    const MemoryContext context = CurrentMemoryContext;
    volatile Outcome outcome = Outcome::failed;
    PG_TRY();
    { outcome = care_for_batch(plan, due, count) ? Outcome::done : Outcome::busy; }
    PG_CATCH();
    {
        if (count == 1 && !ShutdownRequestPending)
            EmitErrorReport();
        FlushErrorState();
        AbortCurrentTransaction();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return outcome;
}

// The round is followed by another one soon: what was renewed has a new time, what was busy may be
// free then.
void come_back_soon(Round &round) {
    round.next = Min(round.next, read_clock() + pause_for_busy);
}

void care_for_one(Plan &plan, const Due &due) {
    if (try_batch(plan, &due, 1) == Outcome::failed) {
        plan.round.next = Min(plan.round.next, note_failure(due.view()));
    } else {
        forget_failure(due.view());
        come_back_soon(plan.round);
    }
}

// What failed the last time would take the rest of its batch with it.
void care_for_all(Plan &plan) {
    Due *const end = plan.due + plan.count;
    Due *from = std::partition(plan.due, end, [](const Due &due) noexcept { return due.failed; });
    for (const Due *due = plan.due; due < from && !ShutdownRequestPending; due++)
        care_for_one(plan, *due);
    for (int size = 0; from < end && !ShutdownRequestPending; from += size) {
        size = (int)Min(batch_size, end - from);
        if (size > 1 && try_batch(plan, from, size) != Outcome::failed)
            come_back_soon(plan.round);
        else
            for (int i = 0; i < size && !ShutdownRequestPending; i++)
                care_for_one(plan, from[i]);
    }
}

Plan plan_round(Oid relation, Oid function) {
    Plan plan = {};
    plan.relation = relation;
    plan.function = function;
    plan.room = 64;
    plan.due = (Due *)palloc(plan.room * sizeof(Due));
    plan.now = read_clock();
    plan.round.next = PG_INT64_MAX;

    const MemoryContext context = CurrentMemoryContext;
    StartTransactionCommand();
    Table table = {};
    if (begin_visit(relation, function, &table)) {
        for_each_bound(table, plan_row, &plan);
        end_visit(table);
    } else {
        plan.round = {true, plan.now + pause_for_busy};
    }
    CommitTransactionCommand();
    MemoryContextSwitchTo(context);
    return plan;
}

} // namespace

bool anything_bound(Oid relation, Oid function) {
    bool found = true;
    Table table = {};
    if (begin_visit(relation, function, &table)) {
        found = false;
        for_each_bound(
            table, [](const Row &, std::string_view, void *arg) { *(bool *)arg = true; }, &found);
        end_visit(table);
    }
    return found;
}

Round care_round(Oid relation, Oid function) {
    forget_old_failures();
    Plan plan = plan_round(relation, function);
    care_for_all(plan);
    return plan.round;
}

} // namespace lease
