#include "care.hpp"

#include "binding.hpp"
#include "durability.hpp"
#include "gate.hpp"
#include "wait.hpp"
#include "wake.hpp"

namespace lease {

namespace {

constexpr int batch_size = 500; // rows a transaction
constexpr Usec pause_for_busy = 50000;

// Names outlive the transactions of a round.
struct Due {
    size_t length;
    char name[longest_name];

    std::string_view view() const { return {name, length}; }
};

struct Plan {
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

Care wanted_care(const Row &row, Usec now) {
    const Care care = care_for(row, session_lives(row), now);
    return care == Care::renew && !has_role(row) ? Care::none : care;
}

void plan_row(const Row &row, std::string_view name, void *arg) {
    auto &plan = *(Plan *)arg;
    if (name.size() > longest_name) // made by hand: the functions know no such name
        return;
    plan.round.anything_bound = true;
    if (wanted_care(row, plan.now) == Care::none) {
        plan.round.next = Min(plan.round.next, next_care(row).value_or(PG_INT64_MAX));
        return;
    }
    if (plan.count == plan.room) {
        plan.room *= 2;
        plan.due = (Due *)repalloc_huge(plan.due, plan.room * sizeof(Due));
    }
    Due &due = plan.due[plan.count++];
    due.length = name.size();
    memcpy(due.name, name.data(), name.size());
}

void begin() {
    StartTransactionCommand();
    PushActiveSnapshot(GetTransactionSnapshot());
}

void commit() {
    PopActiveSnapshot();
    CommitTransactionCommand();
}

// What to do to the locked row, by the care that it wants.
void give_care(Table &table, std::string_view name, Look &look, Care care, Usec now) {
    if (care == Care::unbind) {
        change(table, name, look, unbound(look.row));
        return;
    }
    if (care == Care::release) {
        wake_at_commit(gate_tag(name));
        change(table, name, look, ended(look.row, Ending::released, now));
        return;
    }
    const std::optional<Usec> expiry = instant_after(now, *look.row.ttl);
    if (expiry) {
        require_durable_commit();
        change(table, name, look, extended(look.row, *look.row.ttl, *expiry, now));
    }
}

// False: somebody is busy on the lease.
bool care_behind_gate(Table &table, std::string_view name, Look &look, Care care) {
    if (lock_row(table, look) != Locking::locked)
        return false;
    const Usec now = read_clock();
    if (!look.row.session_pid || wanted_care(look.row, now) != care)
        return false;
    give_care(table, name, look, care, now);
    return true;
}

bool care_for_lease(Table &table, std::string_view name) {
    Look look = find(table, name);
    const Row *row = look.row_if_any();
    const Care care =
        row != nullptr && row->session_pid ? wanted_care(*row, read_clock()) : Care::none;
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
bool care_for_batch(Oid function, const Due *due, int count) {
    bool done = true;
    begin();
    Table table = open_table(function);
    for (int i = 0; i < count; i++)
        done &= care_for_lease(table, due[i].view());
    close_table(table);
    commit();
    return done;
}

// The same; an error is logged and ends that transaction only.
enum class Outcome { done, busy, failed };
Outcome try_batch(Oid function, const Due *due, int count) {
    const MemoryContext context = CurrentMemoryContext;
    volatile Outcome outcome = Outcome::failed;
    PG_TRY();
    { outcome = care_for_batch(function, due, count) ? Outcome::done : Outcome::busy; }
    PG_CATCH();
    {
        EmitErrorReport();
        FlushErrorState();
        AbortCurrentTransaction();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return outcome;
}

Plan plan_round(Oid function) {
    Plan plan = {};
    plan.room = 64;
    plan.due = (Due *)palloc(plan.room * sizeof(Due));
    plan.now = read_clock();
    plan.round.next = PG_INT64_MAX;

    const MemoryContext context = CurrentMemoryContext;
    begin();
    Table table = open_table(function);
    for_each_bound(table, plan_row, &plan);
    close_table(table);
    commit();
    MemoryContextSwitchTo(context);
    return plan;
}

} // namespace

Round care_round(Oid function) {
    Plan plan = plan_round(function);
    bool again = plan.count > 0; // what was renewed has a new time
    for (int from = 0; from < plan.count; from += batch_size) {
        const Due *batch = plan.due + from;
        const int count = Min(batch_size, plan.count - from);
        const Outcome outcome = try_batch(function, batch, count);
        if (outcome == Outcome::failed)
            for (int i = 0; i < count; i++)
                try_batch(function, batch + i, 1);
        again |= outcome != Outcome::done;
    }
    if (again)
        plan.round.next = Min(plan.round.next, read_clock() + pause_for_busy);
    return plan.round;
}

} // namespace lease
