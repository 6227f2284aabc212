#include "binding.hpp"

#include "gate.hpp"
#include "wait.hpp"
#include "wake.hpp"
#include "worker.hpp"

extern "C" {
#include "storage/ipc.h"
}

namespace lease {

namespace {

// The table whose keeper this session wakes when it ends; a session has one database, and that
// has one table of leases.
Oid bound_table = InvalidOid;

// By what this session is known, beside its process ID: when it began. DISCARD ALL ends it for us
// (to a pooler it does); what is bound after that is bound to another one, a microsecond younger.
Usec session_start = 0;

// Runs after the server gave the session's locks back.
void on_session_end(int, Datum) {
    wake_keeper_now(keeper_tag(bound_table));
}

bool is_bound_here(const Row &row) {
    return row.session_pid == MyProcPid && session_start != 0 && row.session_start == session_start;
}

// Takes the lock that says that this session lives, for as long as it lives.
void show_life() {
    if (session_start == 0)
        session_start = MyStartTimestamp;
    else if (server::holds_lock(session_tag(MyProcPid, session_start), ExclusiveLock))
        return;
    else
        session_start++;
    const LOCKTAG session = session_tag(MyProcPid, session_start);
    LockAcquire(&session, ExclusiveLock, true, false);
}

void wake_keeper_at_end(Oid table) {
    if (bound_table == InvalidOid)
        on_shmem_exit(on_session_end, (Datum)0);
    bound_table = table;
}

// Does a step that the holder wants, waiting for whoever is busy on the row. False: it is not the
// holder, or `allowed` says no.
bool change_as_holder(Table &table, std::string_view name, const Claim &claim,
                      bool (*allowed)(const Row &), Row (*next)(const Row &)) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        Answer answer = look_at_lease(table, name, claim);
        Look &look = answer.look;
        if (answer.standing != Standing::holder || !allowed(look.row)) {
            let_go(look);
            return false;
        }
        if (lock_held_row(table, look, claim, &answer.now) && allowed(look.row) &&
            change(table, name, look, next(look.row)))
            return true;
        let_go(look);
    }
}

} // namespace

bool session_lives(const Row &row) {
    if (is_bound_here(row))
        return true;
    return is_held_by_session(session_tag(*row.session_pid, row.session_start.value_or(0)));
}

bool attach_lease(Table &table, Oid function, std::string_view name, const Claim &claim) {
    const Oid relation = RelationGetRelid(table.heap);
    Answer answer = look_at_lease(table, name, claim);
    let_go(answer.look);
    if (answer.standing != Standing::holder)
        return false;
    ensure_keeper(relation, function);
    show_life();
    wake_keeper_at_end(relation);
    const bool done = change_as_holder(
        table, name, claim, [](const Row &) { return true; },
        [](const Row &row) { return bound(row, MyProcPid, session_start); });
    if (done)
        wake_keeper_at_commit(keeper_tag(relation));
    return done;
}

bool detach_lease(Table &table, std::string_view name, const Claim &claim) {
    return change_as_holder(table, name, claim, is_bound_here,
                            [](const Row &row) { return unbound(row); });
}

} // namespace lease
