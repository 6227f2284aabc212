#include "operation.hpp"

#include "core/faults.hpp"
#include "durability.hpp"
#include "fence.hpp"
#include "gate.hpp"
#include "reasons.hpp"
#include "tokens.hpp"
#include "wait.hpp"
#include "wake.hpp"

namespace lease {

namespace {

// Whether the current user has the privileges of the role that the tenure was granted to.
bool is_entitled(const Row &row) {
    if (!row.granted_to) // made by hand: bound to no role
        return true;
    const Oid user = GetUserId();
    const Oid role = get_role_oid(pnstrdup(row.granted_to->data(), row.granted_to->size()), true);
    return OidIsValid(role) ? has_privs_of_role(user, role) : superuser_arg(user);
}

Usec expiry_after(Usec now, Usec ttl) {
    const std::optional<Usec> expiry = instant_after(now, ttl);
    if (!expiry)
        ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW), errmsg("expiry is out of range"),
                        errdetail("The ttl leads beyond the last timestamp.")));
    return *expiry;
}

// False: somebody was faster.
bool extend(Table &table, std::string_view name, Look &look, Usec ttl, Usec now) {
    const Usec expiry = expiry_after(now, ttl);
    require_durable_commit();
    if (expiry < *look.row.expiry) {
        wake_at_commit(gate_tag(name));
        if (look.row.session_pid)
            wake_keeper_at_commit(keeper_tag(RelationGetRelid(table.heap)));
    }
    return change(table, name, look, extended(look.row, ttl, expiry, now));
}

Row new_tenure(const Table &table, std::string_view name, const Row *row, std::string_view owner,
               Usec ttl, Usec now) {
    const Usec expiry = expiry_after(now, ttl);
    const std::string_view role = GetUserNameFromId(GetUserId(), false);
    const std::int64_t token =
        planted("token-not-bumped") && row != nullptr ? row->token : draw_token(table, row);
    note_own_grant(name, token, row != nullptr ? std::optional(row->token) : std::nullopt);
    return granted(row, owner, role, ttl, expiry, token, now);
}

// Changes the free row to the new tenure. False: somebody was faster. A holder that died or was
// too slow is something that whoever runs the server wants to know.
bool take_over(Table &table, std::string_view name, Look &look, const Row &next, Usec now) {
    const bool lapsed = look.row.owner && look.row.expiry;
    const char *when = lapsed ? since(look.row.expiry, now) : "";
    const char *whose = lapsed ? tenure_in_words(look.row) : "";
    if (!change(table, name, look, next))
        return false;
    if (lapsed)
        ereport(LOG_SERVER_ONLY, (errmsg("lease \"%s\" is taken over, its last tenure expired%s",
                                         pnstrdup(name.data(), name.size()), when),
                                  errdetail_internal("%s", whose)));
    return true;
}

// Inserts the row of the new tenure, behind the gate.
Attempt insert_tenure(Table &table, std::string_view name, std::string_view owner, Usec ttl) {
    if (is_being_inserted(table, name))
        return {Verdict::busy, 0, 0, {}};
    require_durable_commit();
    const Row next = new_tenure(table, name, nullptr, owner, ttl, read_clock());
    for (int attempts = 0; attempts < 10; attempts++) {
        if (insert(table, name, next))
            return {Verdict::held, next.token, 0, {}};
        Look look = find(table, name);
        const bool exists = look.row_if_any() != nullptr;
        let_go(look);
        if (exists)
            return {Verdict::look_again, 0, 0, {}};
    }
    ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
                    errmsg("the new row of a lease was suppressed"),
                    errhint("Look for triggers and rules on \"dist_lock\".")));
    pg_unreachable();
}

// The lease was seen to be takeable, and its gate is held.
Attempt take_behind_gate(Table &table, std::string_view name, Look &look, std::string_view owner,
                         Usec ttl) {
    if (look.row_if_any() == nullptr)
        return insert_tenure(table, name, owner, ttl);
    switch (lock_row(table, look)) {
    case Locking::busy:
        return {Verdict::row_busy, 0, 0, lockers_of(look)};
    case Locking::changed:
        return {Verdict::look_again, 0, 0, {}};
    case Locking::free:
        break;
    }
    const Usec now = read_clock();
    if (state_at(&look.row, now) != State::takeable) // the clock was set back
        return {Verdict::busy, 0, 0, {}};
    require_durable_commit();
    const Row next =
        new_tenure(table, name, &look.row, owner, ttl,
                   planted("clock-before-wait") ? GetCurrentStatementStartTimestamp() : now);
    if (!take_over(table, name, look, next, now))
        return {Verdict::look_again, 0, 0, {}};
    return {Verdict::held, next.token, 0, {}};
}

// The owner was seen to hold it.
Attempt extend_own(Table &table, std::string_view name, Look &look, const Claim &claim, Usec ttl) {
    const Usec expiry = *look.row.expiry;
    const Locking locking = lock_row(table, look);
    if (locking == Locking::busy)
        return {Verdict::own_busy, 0, expiry, lockers_of(look)};
    const Usec now = read_clock();
    if (locking == Locking::changed || standing_of(look, claim, now) != Standing::holder)
        return {Verdict::look_again, 0, 0, {}};
    const std::int64_t token = look.row.token;
    if (!extend(table, name, look, ttl, now))
        return {Verdict::look_again, 0, 0, {}};
    return {Verdict::held, token, 0, {}};
}

Attempt take(Table &table, std::string_view name, Look &look, std::string_view owner, Usec ttl,
             Turn turn) {
    const LOCKTAG gate = gate_tag(name);
    if (turn == Turn::unknown && somebody_queues(gate))
        return {Verdict::busy, 0, 0, {}};
    if (!planted("gate-left-out") && !try_lock(gate, gate_alone))
        return {Verdict::gate_busy, 0, 0, {}};
    const Attempt attempt = take_behind_gate(table, name, look, owner, ttl);
    if (attempt.verdict == Verdict::held)
        wake_watchers_at_commit(gate);
    if (attempt.verdict != Verdict::held || planted("gate-back-early"))
        give_back(gate, gate_alone);
    return attempt;
}

Attempt attempt_once(Table &table, std::string_view name, std::string_view owner, Usec ttl,
                     Turn turn) {
    const Claim claim{owner, std::nullopt, true};
    Look look = find(table, name);
    const Usec now = read_clock();
    const State state = state_at(look.row_if_any(), now);
    Attempt attempt{Verdict::busy, 0, 0, {}};
    if (state == State::takeable) {
        attempt = take(table, name, look, owner, ttl, turn);
    } else if (state == State::held && standing_of(look, claim, now) == Standing::holder) {
        attempt = extend_own(table, name, look, claim, ttl);
    } else {
        attempt.until = *look.row.expiry;
    }
    let_go(look);
    return attempt;
}

} // namespace

Standing standing_of(Look &look, const Claim &claim, Usec now) {
    const Row *row = look.row_if_any();
    Claim judged = claim;
    if (row != nullptr && row->owner == claim.owner) {
        if (!look.entitled)
            look.entitled = is_entitled(*row);
        judged.entitled = *look.entitled;
    }
    return standing_at(row, judged, now);
}

bool lock_held_row(Table &table, Look &look, const Claim &claim, Usec *now) {
    switch (lock_row(table, look)) {
    case Locking::busy: {
        const Lockers lockers = lockers_of(look);
        let_go(look); // no pin over a wait
        wait_for_lockers(lockers, {std::nullopt, true});
        return false;
    }
    case Locking::changed:
        return false;
    case Locking::free:
        break;
    }
    *now = read_clock();
    return standing_of(look, claim, *now) == Standing::holder;
}

Attempt attempt_lease(Table &table, std::string_view name, std::string_view owner, Usec ttl,
                      Turn turn) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        const Attempt attempt = attempt_once(table, name, owner, ttl, turn);
        if (attempt.verdict != Verdict::look_again)
            return attempt;
    }
}

std::optional<std::int64_t> try_lease(Table &table, std::string_view name, std::string_view owner,
                                      Usec ttl) {
    for (;;) {
        const Attempt attempt = attempt_lease(table, name, owner, ttl, Turn::unknown);
        if (attempt.verdict == Verdict::held)
            return attempt.token;
        if (attempt.verdict != Verdict::own_busy)
            return std::nullopt;
        wait_for_lockers(attempt.lockers, {attempt.until, true});
    }
}

Answer look_at_lease(Table &table, std::string_view name, const Claim &claim) {
    Look look = find(table, name);
    const Usec now = read_clock();
    return {standing_of(look, claim, now), look, now};
}

Answer renew_lease(Table &table, std::string_view name, const Claim &claim, Usec ttl) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        Answer answer = look_at_lease(table, name, claim);
        if (answer.standing != Standing::holder)
            return answer;
        if (lock_held_row(table, answer.look, claim, &answer.now) &&
            extend(table, name, answer.look, ttl, answer.now))
            return answer;
        let_go(answer.look);
    }
}

Prospect prospect_of_try(Table &table, std::string_view name, std::string_view owner) {
    Look look = find(table, name);
    const Usec now = read_clock();
    const State state = state_at(look.row_if_any(), now);
    const bool own = state == State::held &&
                     standing_of(look, {owner, std::nullopt, true}, now) == Standing::holder;
    let_go(look);
    return own ? Prospect::own : state == State::takeable ? Prospect::free : Prospect::busy;
}

} // namespace lease
