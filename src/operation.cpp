#include "operation.hpp"

#include "durability.hpp"
#include "gate.hpp"
#include "tokens.hpp"
#include "wait.hpp"

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

Standing standing_of(const Look &look, const Claim &claim, Usec now) {
    const Row *row = look.row_if_any();
    Standing standing = standing_at(row, claim, now);
    if (standing == Standing::holder && !is_entitled(*row))
        standing = Standing::other_role;
    return standing;
}

Usec expiry_after(Usec now, Usec ttl) {
    const std::optional<Usec> expiry = instant_after(now, ttl);
    if (!expiry)
        ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW), errmsg("expiry is out of range"),
                        errdetail("The ttl leads beyond the last timestamp.")));
    return *expiry;
}

void extend(Table &table, std::string_view name, Look &look, Usec ttl, Usec now) {
    require_durable_commit();
    change(table, name, look, extended(look.row, ttl, expiry_after(now, ttl), now));
}

void end_by_release(Table &table, std::string_view name, Look &look, std::optional<Usec> keep,
                    Usec now) {
    const std::optional<Usec> free_from = free_after_release(look.row, keep, now);
    if (!free_from)
        ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW), errmsg("keep is out of range"),
                        errdetail("It leads beyond the last timestamp.")));
    if (*free_from > *look.row.expiry)
        require_durable_commit();
    change(table, name, look, ended(look.row, Ending::released, *free_from));
}

Row new_tenure(const Table &table, const Row *row, std::string_view owner, Usec ttl, Usec now) {
    const Usec expiry = expiry_after(now, ttl);
    const std::string_view role = GetUserNameFromId(GetUserId(), false);
    return granted(row, owner, role, ttl, expiry, draw_token(table, row), now);
}

enum class Grant { granted, refused, look_again };

// The lease was seen to be takeable, and its gate is held.
Grant take_behind_gate(Table &table, std::string_view name, Look &look, std::string_view owner,
                       Usec ttl) {
    if (look.row_if_any() == nullptr) {
        if (is_being_inserted(table, name))
            return Grant::refused;
        require_durable_commit();
        const Row next = new_tenure(table, nullptr, owner, ttl, read_clock());
        return insert(table, name, next) ? Grant::granted : Grant::look_again;
    }
    switch (lock_row(table, look)) {
    case Locking::busy:
        return Grant::refused;
    case Locking::changed:
        return Grant::look_again;
    case Locking::locked:
        break;
    }
    const Usec now = read_clock();
    if (state_at(&look.row, now) != State::takeable) // the clock was set back
        return Grant::refused;
    require_durable_commit();
    change(table, name, look, new_tenure(table, &look.row, owner, ttl, now));
    return Grant::granted;
}

Grant take(Table &table, std::string_view name, Look &look, std::string_view owner, Usec ttl) {
    const LOCKTAG gate = gate_tag(name);
    if (!try_exclusive(gate))
        return Grant::refused;
    const Grant grant = take_behind_gate(table, name, look, owner, ttl);
    if (grant != Grant::granted)
        give_back(gate, ExclusiveLock);
    return grant;
}

// Locks the row of a tenure that `claim` was seen to hold, waiting for whoever is busy on it,
// and says whether it is locked and still held. False: look again.
bool lock_held_row(Table &table, Look &look, const Claim &claim, Usec *now,
                   std::optional<Usec> deadline) {
    switch (lock_row(table, look)) {
    case Locking::busy:
        wait_for_lockers(look, deadline);
        return false;
    case Locking::changed:
        return false;
    case Locking::locked:
        break;
    }
    *now = read_clock();
    return standing_of(look, claim, *now) == Standing::holder;
}

// One attempt of a release at a tenure that `claim` was seen to hold. False: look again.
bool release_behind_gate(Table &table, std::string_view name, Look &look, const Claim &claim,
                         std::optional<Usec> keep) {
    const LOCKTAG gate = gate_tag(name);
    if (!try_exclusive(gate)) {
        let_go(look); // no pin over a wait
        take_exclusive(gate);
        look = find_surely(table, name);
        if (standing_of(look, claim, read_clock()) != Standing::holder) {
            give_back(gate, ExclusiveLock);
            return false;
        }
    }
    begin_forgettable_write();
    const Locking locking = lock_row(table, look);
    const Usec now = read_clock();
    if (locking == Locking::locked && standing_of(look, claim, now) == Standing::holder) {
        end_by_release(table, name, look, keep, now);
        end_forgettable_write();
        return true;
    }
    // Nobody waits for a row behind a gate: who holds the row may be about to ask for the gate.
    give_back(gate, ExclusiveLock);
    if (locking == Locking::busy)
        wait_for_lockers(look, std::nullopt);
    return false;
}

} // namespace

bool try_lease(Table &table, std::string_view name, std::string_view owner, Usec ttl) {
    const Claim claim{owner, std::nullopt, true};
    for (int lost_inserts = 0;;) {
        CHECK_FOR_INTERRUPTS();
        Look look = find(table, name);
        Usec now = read_clock();
        if (state_at(look.row_if_any(), now) == State::held) {
            const bool own = standing_of(look, claim, now) == Standing::holder;
            if (own && lock_held_row(table, look, claim, &now, look.row.expiry)) {
                extend(table, name, look, ttl, now);
                return true;
            }
            let_go(look);
            if (!own)
                return false;
            continue;
        }
        if (state_at(look.row_if_any(), now) == State::cooling) {
            let_go(look);
            return false;
        }
        const bool had_row = look.row_if_any() != nullptr;
        const Grant grant = take(table, name, look, owner, ttl);
        let_go(look);
        if (grant != Grant::look_again)
            return grant == Grant::granted;
        if (!had_row && ++lost_inserts > 9)
            ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
                            errmsg("the new row of a lease was suppressed"),
                            errhint("Look for triggers and rules on \"dist_lock\".")));
    }
}

Answer look_at_lease(Table &table, std::string_view name, const Claim &claim) {
    const Look look = find_surely(table, name);
    const Usec now = read_clock();
    return {standing_of(look, claim, now), look, now};
}

Answer renew_lease(Table &table, std::string_view name, const Claim &claim, Usec ttl) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        Answer answer = look_at_lease(table, name, claim);
        if (answer.standing != Standing::holder)
            return answer;
        if (lock_held_row(table, answer.look, claim, &answer.now, std::nullopt)) {
            extend(table, name, answer.look, ttl, answer.now);
            return answer;
        }
        let_go(answer.look);
    }
}

Answer release_lease(Table &table, std::string_view name, const Claim &claim,
                     std::optional<Usec> keep) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        Answer answer = look_at_lease(table, name, claim);
        if (answer.standing != Standing::holder ||
            release_behind_gate(table, name, answer.look, claim, keep))
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
