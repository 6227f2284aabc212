#include "ending.hpp"

#include "core/faults.hpp"
#include "durability.hpp"
#include "gate.hpp"
#include "reasons.hpp"
#include "wait.hpp"
#include "wake.hpp"

namespace lease {

namespace {

struct Ender {
    Ending how = Ending::released;
    const Claim *claim = nullptr; // null: an administrator, who ends whoever's
    std::optional<Usec> keep;
};

bool may_end(Look &look, const Ender &ender, Usec now) {
    return ender.claim != nullptr ? standing_of(look, *ender.claim, now) == Standing::holder
                                  : state_at(look.row_if_any(), now) != State::takeable;
}

// False: somebody was faster.
bool end_now(Table &table, std::string_view name, Look &look, const Ender &ender, Usec now) {
    const std::optional<Usec> free_from = free_after_release(look.row, ender.keep, now);
    if (!free_from)
        ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW), errmsg("keep is out of range"),
                        errdetail("It leads beyond the last timestamp.")));
    const bool broken = ender.how == Ending::broken;
    // A break that a crash forgets would be a tenure come back to life.
    if (broken || (*free_from > *look.row.expiry && !planted("keep-asynchronous")))
        require_durable_commit();
    const char *whose = broken ? tenure_in_words(look.row) : "";
    if (!change(table, name, look, ended(look.row, ender.how, *free_from)))
        return false;
    wake_at_commit(gate_tag(name));
    if (broken)
        ereport(LOG_SERVER_ONLY,
                (errmsg("lease \"%s\" was broken by role \"%s\"",
                        pnstrdup(name.data(), name.size()), GetUserNameFromId(GetUserId(), false)),
                 errdetail_internal("%s", whose)));
    return true;
}

// An administrator who waits wants to know for whom.
void name_the_fences(std::string_view name, const LOCKTAG &gate) {
    int count = 0;
    const VirtualTransactionId *holders = GetLockConflicts(&gate, gate_alone, &count);
    StringInfoData detail;
    initStringInfo(&detail);
    for (int i = 0; i < count; i++) {
        const PGPROC *process = server::process_of(holders[i]);
        appendStringInfoString(&detail, i == 0 ? "" : ", ");
        if (process != nullptr && server::is_running(process, holders[i]))
            appendStringInfo(&detail, "process %d", process->pid);
        else
            appendStringInfoString(&detail, "a prepared transaction");
    }
    if (count == 0) // they have just ended
        return;
    detail.data[0] = (char)pg_toupper((unsigned char)detail.data[0]);
    ereport(NOTICE, (errmsg("waiting for transactions that use lease \"%s\"",
                            pnstrdup(name.data(), name.size())),
                     errdetail_internal("%s.", detail.data)));
}

// One attempt at a lease that was seen to have something to end. False: look again.
bool end_behind_gate(Table &table, std::string_view name, Look &look, const Ender &ender) {
    const LOCKTAG gate = gate_tag(name);
    if (!try_lock(gate, gate_alone)) {
        let_go(look); // no pin over a wait
        if (ender.how == Ending::broken)
            name_the_fences(name, gate);
        take_lock(gate, gate_alone);
        look = find(table, name);
        if (!may_end(look, ender, read_clock())) {
            give_back(gate, gate_alone);
            return false;
        }
    }
    begin_forgettable_write();
    const Locking locking = lock_row(table, look);
    const Usec now = read_clock();
    if (locking == Locking::free && may_end(look, ender, now) &&
        end_now(table, name, look, ender, now)) {
        end_forgettable_write();
        return true;
    }
    // Nobody waits for a row behind a gate: who holds the row may be about to ask for the gate.
    give_back(gate, gate_alone);
    if (locking == Locking::busy) {
        const Lockers lockers = lockers_of(look);
        let_go(look);
        wait_for_lockers(lockers, {std::nullopt, true});
    }
    return false;
}

} // namespace

Answer release_lease(Table &table, std::string_view name, const Claim &claim,
                     std::optional<Usec> keep) {
    const Ender owner{Ending::released, &claim, keep};
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        Answer answer = look_at_lease(table, name, claim);
        if (answer.standing != Standing::holder || end_behind_gate(table, name, answer.look, owner))
            return answer;
        let_go(answer.look);
    }
}

bool break_lease(Table &table, std::string_view name) {
    const Ender administrator{Ending::broken, nullptr, std::nullopt};
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        Look look = find(table, name);
        const bool anything = may_end(look, administrator, read_clock());
        const bool done = anything && end_behind_gate(table, name, look, administrator);
        let_go(look);
        if (done || !anything)
            return done;
    }
}

} // namespace lease
