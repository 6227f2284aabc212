// State, standing and next rows, one by one: the instants around an expiry, rows made by hand,
// and of each step what it changes and that it changes nothing else.

#include "unit.hpp"

#include <string_view>
#include <type_traits>
#include <vector>

using namespace lease;

namespace {

// Apart from each other, so that no field can pass for another.
constexpr Usec acquired = 1000;
constexpr Usec renewed = 2000;
constexpr Usec expiry = 5000;
constexpr Usec now = 3000;

Row held_row() {
    Row row;
    row.owner = "alice";
    row.expiry = expiry;
    row.token = 70;
    row.granted_to = "batch";
    row.acquired_at = acquired;
    row.renewed_at = renewed;
    row.ttl = 3100;
    row.session_pid = 4711;
    row.session_start = 900;
    row.grants = 12;
    row.takeovers = 4;
    row.min_margin = 2500;
    row.last_owner = "zoe";
    row.last_end = Ending::broken;
    return row;
}

Row cooling_row() {
    Row row = held_row();
    row.owner.reset();
    row.session_pid.reset();
    row.session_start.reset();
    row.last_owner = "alice";
    row.last_end = Ending::released;
    return row;
}

Row with_expiry(Row row, std::optional<Usec> when) {
    row.expiry = when;
    return row;
}

Row granted_to_bob(const Row *row, Usec at) {
    return granted(row, "bob", "ops", 600, at + 600, 99, at);
}

Standing standing(const Row &row, const Claim &claim, Usec at) {
    return standing_at(&row, claim, at);
}

constexpr std::optional<std::int64_t> no_token;

} // namespace

static_assert(std::is_trivially_copyable_v<Row> && std::is_trivially_copyable_v<Claim>);
static_assert(noexcept(state_at(nullptr, 0)) &&noexcept(standing_at(nullptr, Claim{}, 0)));
static_assert(noexcept(instant_after(0, 0)) &&noexcept(least_next_token(nullptr)));
static_assert(noexcept(granted(nullptr, {}, {}, 0, 0, 0, 0)));
static_assert(noexcept(extended(Row{}, 0, 0, 0)) &&noexcept(ended(Row{}, Ending::broken, 0)));
static_assert(noexcept(free_after_release(Row{}, {}, 0)));

BOOST_AUTO_TEST_SUITE(state)

BOOST_AUTO_TEST_CASE(around_an_expiry) {
    const Row held = held_row();
    BOOST_TEST(state_at(&held, expiry - 1) == State::held);
    BOOST_TEST(state_at(&held, expiry) == State::takeable);
    BOOST_TEST(state_at(&held, expiry + 1) == State::takeable);

    const Row cooling = cooling_row();
    BOOST_TEST(state_at(&cooling, expiry - 1) == State::cooling);
    BOOST_TEST(state_at(&cooling, expiry) == State::takeable);
    BOOST_TEST(state_at(&cooling, expiry + 1) == State::takeable);
}

BOOST_AUTO_TEST_CASE(rows_made_by_hand) {
    const Row no_row_yet;
    const Row owner_without_expiry = with_expiry(held_row(), std::nullopt);
    const Row neither = with_expiry(cooling_row(), std::nullopt);
    const Row held_for_ever = with_expiry(held_row(), after_all_time);
    const Row cooling_for_ever = with_expiry(cooling_row(), after_all_time);
    const Row never_held = with_expiry(held_row(), before_all_time);
    const Row never_cooling = with_expiry(cooling_row(), before_all_time);
    for (const Usec at : {before_all_time, Usec{-1}, Usec{0}, now, timestamp_end - 1}) {
        BOOST_TEST(state_at(nullptr, at) == State::takeable);
        BOOST_TEST(state_at(&no_row_yet, at) == State::takeable);
        BOOST_TEST(state_at(&owner_without_expiry, at) == State::takeable);
        BOOST_TEST(state_at(&neither, at) == State::takeable);
        BOOST_TEST(state_at(&held_for_ever, at) == State::held);
        BOOST_TEST(state_at(&cooling_for_ever, at) == State::cooling);
        BOOST_TEST(state_at(&never_held, at) == State::takeable);
        BOOST_TEST(state_at(&never_cooling, at) == State::takeable);
    }
    BOOST_TEST(state_at(&held_for_ever, after_all_time) == State::takeable);
}

// An owner is there or not, whatever its text: an empty text is not SQL's NULL.
BOOST_AUTO_TEST_CASE(an_empty_owner_is_an_owner) {
    Row row = held_row();
    row.owner = "";
    BOOST_TEST(state_at(&row, now) == State::held);
    BOOST_TEST(standing(row, {"", no_token}, now) == Standing::holder);
    BOOST_TEST(standing(cooling_row(), {"", no_token}, now) == Standing::not_held);
}

BOOST_AUTO_TEST_CASE(exactly_one_of_three) {
    const std::vector<Usec> instants = {before_all_time,
                                        before_all_time + 1,
                                        -5001,
                                        -5000,
                                        -4999,
                                        -1,
                                        0,
                                        1,
                                        4999,
                                        5000,
                                        5001,
                                        timestamp_end - 1,
                                        timestamp_end,
                                        after_all_time - 1,
                                        after_all_time};
    std::vector<std::optional<Usec>> expiries(instants.begin(), instants.end());
    expiries.push_back(std::nullopt);
    for (const std::optional<Usec> end : expiries) {
        for (const bool owned : {true, false}) {
            const Row row = with_expiry(owned ? held_row() : cooling_row(), end);
            for (const Usec at : instants) {
                const bool held = owned && end && *end > at;
                const bool cooling = !owned && end && *end > at;
                const bool takeable = !end || *end <= at;
                BOOST_REQUIRE(held + cooling + takeable == 1);
                BOOST_TEST_CONTEXT("owned " << owned << ", expiry " << told(end) << ", at " << at) {
                    BOOST_TEST((state_at(&row, at) == State::held) == held);
                    BOOST_TEST((state_at(&row, at) == State::cooling) == cooling);
                    BOOST_TEST((state_at(&row, at) == State::takeable) == takeable);
                    const bool holder = standing(row, {"alice", no_token}, at) == Standing::holder;
                    BOOST_TEST(holder == held);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(standings)

BOOST_AUTO_TEST_CASE(of_a_live_tenure) {
    const Row row = held_row();
    for (const Usec at : {before_all_time, acquired, now, expiry - 1}) {
        BOOST_TEST(standing(row, {"alice", no_token}, at) == Standing::holder);
        BOOST_TEST(standing(row, {"alice", 70}, at) == Standing::holder);
        BOOST_TEST(standing(row, {"alice", 69}, at) == Standing::other_tenure);
        BOOST_TEST(standing(row, {"alice", 71}, at) == Standing::other_tenure);
        BOOST_TEST(standing(row, {"alice", 0}, at) == Standing::other_tenure);
        BOOST_TEST(standing(row, {"bob", no_token}, at) == Standing::held_by_other);
        BOOST_TEST(standing(row, {"bob", 70}, at) == Standing::held_by_other);
        BOOST_TEST(standing(row, {"alice", no_token, false}, at) == Standing::other_role);
        BOOST_TEST(standing(row, {"alice", 70, false}, at) == Standing::other_role);
        BOOST_TEST(standing(row, {"alice", 69, false}, at) == Standing::other_role);
        BOOST_TEST(standing(row, {"bob", no_token, false}, at) == Standing::held_by_other);
    }
}

BOOST_AUTO_TEST_CASE(of_an_expired_tenure) {
    const Row row = held_row();
    for (const Usec at : {expiry, expiry + 1, after_all_time}) {
        BOOST_TEST(standing(row, {"alice", no_token}, at) == Standing::expired);
        BOOST_TEST(standing(row, {"alice", 70}, at) == Standing::expired);
        BOOST_TEST(standing(row, {"alice", 70, false}, at) == Standing::expired);
        BOOST_TEST(standing(row, {"alice", 69}, at) == Standing::not_held);
        BOOST_TEST(standing(row, {"bob", no_token}, at) == Standing::not_held);
        BOOST_TEST(standing(row, {"bob", 70}, at) == Standing::not_held);
    }
    const Row long_ago = with_expiry(held_row(), before_all_time);
    BOOST_TEST(standing(long_ago, {"alice", no_token}, before_all_time) == Standing::expired);
}

BOOST_AUTO_TEST_CASE(where_nobody_holds) {
    const Claim claims[] = {{"alice", no_token}, {"alice", 70}, {"bob", no_token}, {"", 0}};
    const Row owner_without_expiry = with_expiry(held_row(), std::nullopt);
    const Row neither = with_expiry(cooling_row(), std::nullopt);
    const Row cooling = cooling_row();
    for (const Claim &claim : claims) {
        BOOST_TEST(standing_at(nullptr, claim, now) == Standing::not_held);
        BOOST_TEST(standing(Row{}, claim, now) == Standing::not_held);
        BOOST_TEST(standing(owner_without_expiry, claim, now) == Standing::not_held);
        BOOST_TEST(standing(neither, claim, now) == Standing::not_held);
        for (const Usec at : {expiry - 1, expiry, expiry + 1})
            BOOST_TEST(standing(cooling, claim, at) == Standing::not_held);
    }
}

BOOST_AUTO_TEST_CASE(of_a_tenure_without_end) {
    const Row row = with_expiry(held_row(), after_all_time);
    BOOST_TEST(standing(row, {"alice", no_token}, timestamp_end - 1) == Standing::holder);
    BOOST_TEST(standing(row, {"bob", no_token}, timestamp_end - 1) == Standing::held_by_other);
}

BOOST_AUTO_TEST_CASE(owners_compare_byte_by_byte) {
    const std::string_view with_nul("a\0b", 3);
    Row row = held_row();
    for (const std::string_view owner :
         {std::string_view("alice"), with_nul, std::string_view("\xc3\xa9"),
          std::string_view("e\xcc\x81")}) {
        row.owner = owner;
        for (const std::string_view other :
             {std::string_view("alic"), std::string_view("alice "), std::string_view("Alice"),
              std::string_view("a"), std::string_view("a\0c", 3), std::string_view("e")})
            BOOST_TEST(standing(row, {other, no_token}, now) == Standing::held_by_other);
        BOOST_TEST(standing(row, {owner, no_token}, now) == Standing::holder);
    }
    row.owner = "\xc3\xa9"; // composed and decomposed are two owners
    BOOST_TEST(standing(row, {"e\xcc\x81", no_token}, now) == Standing::held_by_other);
}

BOOST_AUTO_TEST_CASE(odd_tokens_are_matched_as_they_are) {
    Row row = held_row();
    for (const std::int64_t token : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                     std::int64_t{0}, last_token}) {
        row.token = token;
        BOOST_TEST(standing(row, {"alice", token}, now) == Standing::holder);
        BOOST_TEST(standing(row, {"alice", 70}, now) == Standing::other_tenure);
        BOOST_TEST(standing(row, {"alice", no_token}, now) == Standing::holder);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(instants_and_tokens)

BOOST_AUTO_TEST_CASE(instant_after_borders) {
    const auto at = [](Usec from, Usec length) { return told(instant_after(from, length)); };
    BOOST_TEST(at(now, 0) == told(now));
    BOOST_TEST(at(now, 1) == told(now + 1));
    BOOST_TEST(at(-5000, 4000) == "-1000");
    BOOST_TEST(at(timestamp_end - 2, 1) == told(timestamp_end - 1));
    BOOST_TEST(at(timestamp_end - 1, 0) == told(timestamp_end - 1));
    BOOST_TEST(at(0, timestamp_end - 1) == told(timestamp_end - 1));
    BOOST_TEST(at(timestamp_end - 1, 1) == "NULL");
    BOOST_TEST(at(0, timestamp_end) == "NULL");
    BOOST_TEST(at(0, after_all_time) == "NULL");
    BOOST_TEST(at(1, after_all_time) == "NULL");
    BOOST_TEST(at(now, after_all_time) == "NULL");
    BOOST_TEST(at(timestamp_end - 1, after_all_time) == "NULL");
    BOOST_TEST(at(after_all_time, 0) == "NULL");
    BOOST_TEST(at(after_all_time, after_all_time) == "NULL");
    BOOST_TEST(at(-1, after_all_time) == "NULL");
    BOOST_TEST(at(before_all_time, after_all_time) == "-1");
}

BOOST_AUTO_TEST_CASE(the_end_of_timestamps) {
    // 294277-01-01 as microseconds since 2000-01-01: the server's END_TIMESTAMP.
    const std::int64_t days_to_end = 109203528 - 2451545; // Julian days
    BOOST_TEST(timestamp_end == days_to_end * 86400000000);
}

BOOST_AUTO_TEST_CASE(least_next_tokens) {
    const auto after = [](std::int64_t token) {
        Row row = held_row();
        row.token = token;
        return told(least_next_token(&row));
    };
    BOOST_TEST(told(least_next_token(nullptr)) == "1");
    BOOST_TEST(after(70) == "71");
    BOOST_TEST(after(0) == "1");
    BOOST_TEST(after(-1) == "0");
    BOOST_TEST(after(-70) == "-69");
    BOOST_TEST(after(std::numeric_limits<std::int64_t>::min()) ==
               told(std::numeric_limits<std::int64_t>::min() + 1));
    BOOST_TEST(after(last_token - 1) == told(last_token));
    BOOST_TEST(after(last_token) == "NULL");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(steps)

BOOST_AUTO_TEST_CASE(grant_of_a_new_row) {
    Row should;
    should.owner = "bob";
    should.expiry = now + 600;
    should.token = 99;
    should.granted_to = "ops";
    should.acquired_at = now;
    should.renewed_at = now;
    should.ttl = 600;
    should.grants = 1;
    BOOST_TEST(differences(granted_to_bob(nullptr, now), should) == "");
    const Row blank; // inserted by hand, with nothing but a name
    BOOST_TEST(differences(granted_to_bob(&blank, now), should) == "");
}

// What every grant changes of `row`; the counts and the last tenure are the caller's to add.
static Row as_granted_to_bob(Row row, Usec at) {
    row.owner = "bob";
    row.expiry = at + 600;
    row.token = 99;
    row.granted_to = "ops";
    row.acquired_at = at;
    row.renewed_at = at;
    row.ttl = 600;
    row.session_pid.reset();
    row.session_start.reset();
    row.min_margin.reset();
    ++row.grants;
    return row;
}

BOOST_AUTO_TEST_CASE(grant_over_an_expired_tenure) {
    for (const Usec end : {before_all_time, Usec{-1}, now - 1, now}) {
        const Row row = with_expiry(held_row(), end);
        Row should = as_granted_to_bob(row, now);
        should.takeovers = 5;
        should.last_owner = "alice";
        should.last_end = Ending::expired;
        BOOST_TEST(differences(granted_to_bob(&row, now), should) == "");
    }
}

// Its own lost tenure counts as any other: it was too slow.
BOOST_AUTO_TEST_CASE(grant_to_the_owner_that_expired) {
    const Row row = held_row();
    Row should = as_granted_to_bob(row, expiry);
    should.owner = "alice";
    should.takeovers = 5;
    should.last_owner = "alice";
    should.last_end = Ending::expired;
    BOOST_TEST(differences(granted(&row, "alice", "ops", 600, expiry + 600, 99, expiry), should) ==
               "");
}

BOOST_AUTO_TEST_CASE(grant_after_a_release_takes_nothing_over) {
    for (const Ending how : {Ending::released, Ending::broken}) {
        Row row = cooling_row();
        row.last_end = how;
        BOOST_TEST(differences(granted_to_bob(&row, expiry), as_granted_to_bob(row, expiry)) == "");
    }
}

BOOST_AUTO_TEST_CASE(grant_of_odd_rows_takes_nothing_over) {
    const Row owner_without_expiry = with_expiry(held_row(), std::nullopt);
    const Row neither = with_expiry(cooling_row(), std::nullopt);
    Row bare = with_expiry(cooling_row(), before_all_time);
    bare.granted_to.reset();
    bare.acquired_at.reset();
    bare.renewed_at.reset();
    bare.ttl.reset();
    bare.min_margin.reset();
    bare.last_owner.reset();
    bare.last_end.reset();
    bare.token = -70;
    for (const Row &row : {owner_without_expiry, neither, bare})
        BOOST_TEST(differences(granted_to_bob(&row, now), as_granted_to_bob(row, now)) == "");
}

BOOST_AUTO_TEST_CASE(counts_stop_at_their_maximum) {
    Row row = held_row();
    row.grants = full_count - 1;
    row.takeovers = full_count - 1;
    Row next = granted_to_bob(&row, expiry);
    BOOST_TEST(next.grants == full_count);
    BOOST_TEST(next.takeovers == full_count);
    next = granted_to_bob(&next, expiry + 600);
    BOOST_TEST(next.grants == full_count);
    BOOST_TEST(next.takeovers == full_count);

    row.grants = -3; // by hand
    BOOST_TEST(granted_to_bob(&row, expiry).grants == -2);
}

BOOST_AUTO_TEST_CASE(extension) {
    const Row row = held_row();
    Row should = row;
    should.expiry = now + 600;
    should.renewed_at = now;
    should.ttl = 600;
    should.min_margin = expiry - now;
    BOOST_TEST(differences(extended(row, 600, now + 600, now), should) == "");
}

BOOST_AUTO_TEST_CASE(extension_keeps_the_least_margin) {
    const auto margin = [](std::optional<Usec> before, std::optional<Usec> end, Usec at) {
        Row row = with_expiry(held_row(), end);
        row.min_margin = before;
        return told(extended(row, 600, at + 600, at).min_margin);
    };
    BOOST_TEST(margin(std::nullopt, expiry, expiry - 1) == "1");
    BOOST_TEST(margin(std::nullopt, expiry, acquired) == "4000");
    BOOST_TEST(margin(1999, expiry, now) == "1999");
    BOOST_TEST(margin(2000, expiry, now) == "2000");
    BOOST_TEST(margin(2001, expiry, now) == "2000");
    BOOST_TEST(margin(-7, expiry, now) == "-7");

    // A margin that nobody can speak of leaves the least one as it is.
    BOOST_TEST(margin(std::nullopt, after_all_time, now) == "NULL");
    BOOST_TEST(margin(8, after_all_time, now) == "8");
    BOOST_TEST(margin(after_all_time, timestamp_end, now) == told(after_all_time));
    BOOST_TEST(margin(std::nullopt, timestamp_end - 1, now) == told(timestamp_end - 1 - now));
    const Usec stone_age = -211813488000000000; // the server's first timestamp, in 4714 BC
    BOOST_TEST(margin(std::nullopt, timestamp_end - 1, stone_age) == "NULL");
    BOOST_TEST(margin(8, timestamp_end - 1, stone_age) == "8");
}

BOOST_AUTO_TEST_CASE(extension_of_a_row_with_little_in_it) {
    Row row;
    row.owner = "alice";
    row.expiry = expiry;
    Row should = row;
    should.expiry = now + 600;
    should.renewed_at = now;
    should.ttl = 600;
    should.min_margin = expiry - now;
    BOOST_TEST(differences(extended(row, 600, now + 600, now), should) == "");
}

// A shorter ttl brings the expiry nearer: the last word of the holder counts.
BOOST_AUTO_TEST_CASE(extension_may_shorten) {
    BOOST_TEST(told(extended(held_row(), 1, now + 1, now).expiry) == told(now + 1));
}

BOOST_AUTO_TEST_CASE(end_of_a_tenure) {
    for (const Ending how : {Ending::released, Ending::broken}) {
        for (const Usec free_from : {now, expiry, expiry + 600}) {
            const Row row = held_row();
            Row should = row;
            should.owner.reset();
            should.expiry = free_from;
            should.session_pid.reset();
            should.session_start.reset();
            should.last_owner = "alice";
            should.last_end = how;
            const Row next = ended(row, how, free_from);
            BOOST_TEST(differences(next, should) == "");
            BOOST_TEST(state_at(&next, free_from) == State::takeable);
            BOOST_TEST(state_at(&next, free_from - 1) == State::cooling);
        }
    }
}

// There is no tenure to end any more, so how the last one ended stays told.
BOOST_AUTO_TEST_CASE(end_of_a_cooling_time) {
    const Row row = cooling_row();
    BOOST_TEST(differences(ended(row, Ending::broken, now), with_expiry(row, now)) == "");
}

BOOST_AUTO_TEST_CASE(keep_counts_from_the_grant) {
    const auto free_from = [](std::optional<Usec> acquired_at, std::optional<Usec> keep, Usec at) {
        Row row = held_row();
        row.acquired_at = acquired_at;
        return told(free_after_release(row, keep, at));
    };
    BOOST_TEST(free_from(1000, std::nullopt, 3000) == "3000");
    BOOST_TEST(free_from(1000, 0, 3000) == "3000");
    BOOST_TEST(free_from(1000, 2001, 3000) == "3001");
    BOOST_TEST(free_from(1000, 2000, 3000) == "3000");
    BOOST_TEST(free_from(1000, 1999, 3000) == "3000");
    BOOST_TEST(free_from(1000, 9000, 3000) == "10000"); // beyond the expiry, too
    BOOST_TEST(free_from(3000, 0, 3000) == "3000");

    BOOST_TEST(free_from(4000, 10, 3000) == "4010"); // the clock went back since
    BOOST_TEST(free_from(4000, 0, 3000) == "4000");
    BOOST_TEST(free_from(4000, std::nullopt, 3000) == "3000");

    BOOST_TEST(free_from(std::nullopt, 10, 3000) == "3010");
    BOOST_TEST(free_from(std::nullopt, 0, 3000) == "3000");
    BOOST_TEST(free_from(before_all_time, 10, 3000) == "3000");

    BOOST_TEST(free_from(1000, timestamp_end - 1001, 3000) == told(timestamp_end - 1));
    BOOST_TEST(free_from(1000, timestamp_end - 1000, 3000) == "NULL");
    BOOST_TEST(free_from(1000, after_all_time, 3000) == "NULL");
    BOOST_TEST(free_from(after_all_time, 0, 3000) == "NULL");
    BOOST_TEST(free_from(after_all_time, 1, 3000) == "NULL");
    BOOST_TEST(free_from(after_all_time, std::nullopt, 3000) == "3000");
}

BOOST_AUTO_TEST_SUITE_END()
