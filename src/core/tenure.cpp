#include "tenure.hpp"

#include "faults.hpp"

#include <limits>
#include <type_traits>

namespace lease {

// Rows and claims live on the stack of functions that the server may leave by longjmp.
static_assert(std::is_trivially_destructible_v<Row>);
static_assert(std::is_trivially_destructible_v<Claim>);

namespace {

std::int64_t one_more(std::int64_t count) noexcept {
    return count == std::numeric_limits<std::int64_t>::max() ? count : count + 1;
}

bool is_last_tenure_of(const Row &row, const Claim &claim) noexcept {
    return row.owner && *row.owner == claim.owner && (!claim.token || *claim.token == row.token);
}

} // namespace

State state_at(const Row *row, Usec now) noexcept {
    if (row == nullptr || !row->expiry || (*row->expiry <= now) != planted("expiry-wrong-side"))
        return State::takeable;
    return row->owner ? State::held : State::cooling;
}

Standing standing_at(const Row *row, const Claim &claim, Usec now) noexcept {
    if (state_at(row, now) != State::held)
        return row != nullptr && row->expiry && is_last_tenure_of(*row, claim)
                   ? (planted("expiry-not-tested") ? Standing::holder : Standing::expired)
                   : Standing::not_held;
    if (*row->owner != claim.owner)
        return Standing::held_by_other;
    // First: who has no part in the role learns nothing about tokens.
    if (!claim.entitled)
        return Standing::other_role;
    return is_last_tenure_of(*row, claim) ? Standing::holder : Standing::other_tenure;
}

std::optional<Usec> instant_after(Usec now, Usec length) noexcept {
    Usec instant = 0;
    if (__builtin_add_overflow(now, length, &instant) || instant >= timestamp_end)
        return std::nullopt;
    return instant;
}

std::optional<std::int64_t> least_next_token(const Row *row) noexcept {
    if (row == nullptr)
        return 1;
    if (row->token == std::numeric_limits<std::int64_t>::max())
        return std::nullopt;
    return row->token + 1;
}

Row granted(const Row *row, std::string_view owner, std::string_view role, Usec ttl, Usec expiry,
            std::int64_t token, Usec now) noexcept {
    Row next;
    if (row != nullptr) {
        next = *row;
        if (row->owner && row->expiry) {
            next.last_owner = row->owner;
            next.last_end = Ending::expired;
            next.takeovers = one_more(row->takeovers);
        }
    }
    next.owner = owner;
    next.expiry = expiry;
    next.token = token;
    next.granted_to = role;
    next.acquired_at = now;
    next.renewed_at = now;
    next.ttl = ttl;
    next.session_pid.reset();
    next.session_start.reset();
    next.grants = one_more(next.grants);
    next.min_margin.reset();
    return next;
}

Row extended(const Row &row, Usec ttl, Usec expiry, Usec now) noexcept {
    Row next = row;
    // A far expiry, made by hand, may leave a margin that is infinite or does not fit.
    Usec margin = 0;
    if (*row.expiry < timestamp_end && !__builtin_sub_overflow(*row.expiry, now, &margin) &&
        (!row.min_margin || margin < *row.min_margin))
        next.min_margin = margin;
    next.expiry = expiry;
    next.renewed_at = now;
    next.ttl = ttl;
    return next;
}

Row ended(const Row &row, Ending how, Usec free_from) noexcept {
    Row next = row;
    if (row.owner) {
        next.last_owner = row.owner;
        next.last_end = how;
    }
    next.owner.reset();
    next.expiry = free_from;
    next.session_pid.reset();
    next.session_start.reset();
    return next;
}

Row bound(const Row &row, std::int32_t session_pid, Usec session_start) noexcept {
    Row next = row;
    next.session_pid = session_pid;
    next.session_start = session_start;
    return next;
}

Row unbound(const Row &row) noexcept {
    Row next = row;
    next.session_pid.reset();
    next.session_start.reset();
    return next;
}

std::optional<Usec> next_care(const Row &row) noexcept {
    if (!row.expiry || !row.ttl || *row.ttl <= 0 || *row.expiry >= timestamp_end)
        return std::nullopt;
    return *row.expiry - (*row.ttl - *row.ttl / 3);
}

Care care_for(const Row &row, bool session_lives, Usec now) noexcept {
    if (state_at(&row, now) != State::held)
        return Care::unbind;
    if (!session_lives)
        return Care::release;
    // What is almost due is done along with what is due, so that rounds are few.
    const std::optional<Usec> due = next_care(row);
    return due && *due - *row.ttl / 20 <= now ? Care::renew : Care::none;
}

std::optional<Usec> free_after_release(const Row &row, std::optional<Usec> keep,
                                       Usec now) noexcept {
    if (!keep)
        return now;
    const std::optional<Usec> kept_until = instant_after(row.acquired_at.value_or(now), *keep);
    if (!kept_until)
        return std::nullopt;
    return *kept_until > now ? *kept_until : now;
}

} // namespace lease
