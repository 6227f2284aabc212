// What a lease's row means at an instant, and what its next row is.
// Invariant: at most one tenure of a row is live at any instant, and each new
// tenure has a larger token than the one before it. Pure: `now` is an argument,
// nothing is allocated, nothing throws; texts are views that the caller keeps.
#ifndef LEASE_CORE_TENURE_HPP
#define LEASE_CORE_TENURE_HPP

#include "duration.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lease {

// First instant that a timestamp cannot name (the year 294277).
constexpr Usec timestamp_end = 9223371331200000000;

// Bytes that a name or an owner may have.
constexpr std::size_t longest_name = 255;

// How a tenure ended.
enum class Ending : std::uint8_t { released, expired, broken };

// One row of dist_lock. An empty optional is SQL's NULL.
struct Row {
    std::optional<std::string_view> owner;
    std::optional<Usec> expiry;
    std::int64_t token = 0;
    std::optional<std::string_view> granted_to; // role
    std::optional<Usec> acquired_at;
    std::optional<Usec> renewed_at;
    std::optional<Usec> ttl;
    std::optional<std::int32_t> session_pid;
    std::optional<Usec> session_start;
    std::int64_t grants = 0;
    std::int64_t takeovers = 0;
    std::optional<Usec> min_margin;
    std::optional<std::string_view> last_owner;
    std::optional<Ending> last_end;
};

// Exactly one of these is true of a row, and of no row at all, at any instant.
enum class State : std::uint8_t {
    held,     // an owner, and its expiry is to come
    cooling,  // no owner, and nobody may take it before its expiry
    takeable, // anything else
};

// Who asks.
struct Claim {
    std::string_view owner;
    std::optional<std::int64_t> token; // if given, it means that very tenure
    bool entitled = true;              // has the privileges of the role that the row was granted to
};

// What the claimant is to the lease. All but `holder` say why it is not that.
enum class Standing : std::uint8_t {
    holder,
    not_held,      // nobody holds it, and this owner's tenure was not the last
    expired,       // this owner's tenure was the last, and ran out
    held_by_other, // another owner's tenure is live
    other_tenure,  // this owner holds it, by a tenure with another token
    other_role,    // this owner holds it, granted to a role that the caller has no part in
};

// A null `row` is a lease that has no row.
State state_at(const Row *row, Usec now) noexcept;
Standing standing_at(const Row *row, const Claim &claim, Usec now) noexcept;

// now + length, or nothing if no timestamp can name it.
std::optional<Usec> instant_after(Usec now, Usec length) noexcept;

// The least token that the next tenure may have; nothing if there is none left.
std::optional<std::int64_t> least_next_token(const Row *row) noexcept;

// The next rows. The caller has checked that the step is allowed at `now`:
// granted() wants a takeable lease, extended() the holder's standing, ended() a
// lease that is held or cooling; of a cooling one, how its last tenure ended stays.
Row granted(const Row *row, std::string_view owner, std::string_view role, Usec ttl, Usec expiry,
            std::int64_t token, Usec now) noexcept;
Row extended(const Row &row, Usec ttl, Usec expiry, Usec now) noexcept;
Row ended(const Row &row, Ending how, Usec free_from) noexcept;

Row bound(const Row &row, std::int32_t session_pid, Usec session_start) noexcept;
Row unbound(const Row &row) noexcept;

// What the keeper owes to a row that is bound to a session.
enum class Care : std::uint8_t {
    none,    // not yet
    renew,   // a third of its ttl has gone by
    release, // its session has gone
    unbind,  // its tenure is over
};
Care care_for(const Row &row, bool session_lives, Usec now) noexcept;

// When a held row wants care again, if its session lives; nothing: never (its ttl or expiry was
// made by hand).
std::optional<Usec> next_care(const Row &row) noexcept;

// When others may take a lease that is released at `now` and was to be kept
// from them for `keep` since it was acquired; nothing if no timestamp can name it.
std::optional<Usec> free_after_release(const Row &row, std::optional<Usec> keep, Usec now) noexcept;

} // namespace lease

#endif
