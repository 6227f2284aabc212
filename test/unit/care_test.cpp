// What the keeper owes to a row, at the instants around each border; and that what
// it does is enough: a row that gets its care in time never lapses.

#include "unit.hpp"

using namespace lease;

namespace lease {

inline std::ostream &operator<<(std::ostream &out, Care care) {
    constexpr const char *names[] = {"none", "renew", "release", "unbind"};
    return out << names[static_cast<int>(care)];
}

} // namespace lease

namespace {

constexpr Usec granted_at = 10000;
constexpr Usec ttl = 6000;
constexpr Usec expiry = granted_at + ttl;
constexpr Usec due = granted_at + ttl / 3;

Row bound_row() {
    Row row;
    row.owner = "alice";
    row.expiry = expiry;
    row.token = 70;
    row.acquired_at = granted_at;
    row.renewed_at = granted_at;
    row.ttl = ttl;
    row.session_pid = 4711;
    row.session_start = 900;
    return row;
}

} // namespace

BOOST_AUTO_TEST_SUITE(care)

BOOST_AUTO_TEST_CASE(a_third_of_the_ttl) {
    const Row row = bound_row();
    BOOST_TEST(*next_care(row) == due);
    BOOST_TEST(care_for(row, true, granted_at) == Care::none);
    BOOST_TEST(care_for(row, true, due - ttl / 20 - 1) == Care::none);
    BOOST_TEST(care_for(row, true, due - ttl / 20) == Care::renew);
    BOOST_TEST(care_for(row, true, due) == Care::renew);
    BOOST_TEST(care_for(row, true, expiry - 1) == Care::renew);
}

BOOST_AUTO_TEST_CASE(what_ran_out_is_never_renewed) {
    const Row row = bound_row();
    for (const bool lives : {true, false}) {
        BOOST_TEST(care_for(row, lives, expiry) == Care::unbind);
        BOOST_TEST(care_for(row, lives, expiry + 1) == Care::unbind);
        BOOST_TEST(care_for(row, lives, after_all_time) == Care::unbind);
    }
}

BOOST_AUTO_TEST_CASE(whose_session_has_gone) {
    const Row row = bound_row();
    for (const Usec now : {before_all_time, Usec{0}, granted_at, due, expiry - 1})
        BOOST_TEST(care_for(row, false, now) == Care::release);
}

BOOST_AUTO_TEST_CASE(released_and_broken) {
    const Row row = ended(bound_row(), Ending::released, due);
    BOOST_TEST(!row.session_pid.has_value());
    BOOST_TEST(!row.session_start.has_value());
    // One that somebody bound by hand all the same, cooling or free.
    Row by_hand = row;
    by_hand.session_pid = 4711;
    for (const bool lives : {true, false}) {
        BOOST_TEST(care_for(by_hand, lives, due - 1) == Care::unbind);
        BOOST_TEST(care_for(by_hand, lives, due) == Care::unbind);
    }
    by_hand.expiry.reset();
    BOOST_TEST(care_for(by_hand, true, due) == Care::unbind);
}

BOOST_AUTO_TEST_CASE(made_by_hand) {
    Row row = bound_row();
    row.expiry.reset();
    BOOST_TEST(care_for(row, true, due) == Care::unbind);
    BOOST_TEST(!next_care(row).has_value());

    row = bound_row();
    row.ttl.reset();
    BOOST_TEST(!next_care(row).has_value());
    BOOST_TEST(care_for(row, true, expiry - 1) == Care::none);
    BOOST_TEST(care_for(row, true, expiry) == Care::unbind);

    for (const Usec bad : {Usec{0}, Usec{-1}, -ttl, before_all_time}) {
        row.ttl = bad;
        BOOST_TEST(!next_care(row).has_value());
        BOOST_TEST(care_for(row, true, expiry - 1) == Care::none);
    }
    row.ttl = after_all_time; // what it leads to no timestamp can name
    BOOST_TEST(care_for(row, true, granted_at) == Care::renew);
    row.expiry = timestamp_end - 1;
    BOOST_TEST(care_for(row, true, granted_at) == Care::none);

    row = bound_row();
    for (const Usec far : {timestamp_end, after_all_time}) {
        row.expiry = far;
        BOOST_TEST(!next_care(row).has_value());
        BOOST_TEST(care_for(row, true, granted_at) == Care::none);
        BOOST_TEST(care_for(row, false, granted_at) == Care::release);
    }
    row.expiry = before_all_time;
    BOOST_TEST(care_for(row, true, granted_at) == Care::unbind);
}

// Rounds come when the earliest row is due, up to a quarter of the ttl late.
BOOST_AUTO_TEST_CASE(rounds_in_time_lose_nothing) {
    for (Usec length : {Usec{1}, Usec{7}, Usec{100}, Usec{30000000}, Usec{86400000000}}) {
        Row row = bound_row();
        row.ttl = length;
        row.expiry = granted_at + length;
        Usec now = granted_at;
        for (int round = 0; round < 100; round++) {
            now = *next_care(row) + (round % 3) * length / 8;
            if (now < *row.expiry)
                BOOST_TEST(care_for(row, true, now) == Care::renew);
            BOOST_TEST((now < *row.expiry || length < 7));
            row = extended(row, length, now + length, now);
        }
    }
}

BOOST_AUTO_TEST_CASE(bound_and_unbound) {
    Row row = bound(unbound(bound_row()), 1, 2);
    BOOST_TEST(*row.session_pid == 1);
    BOOST_TEST(*row.session_start == 2);
    BOOST_TEST(*row.expiry == expiry);
    row = extended(row, 2 * ttl, expiry + ttl, due);
    BOOST_TEST(*row.session_pid == 1);
    row = granted(&row, "bob", "ops", ttl, expiry + 2 * ttl, 99, expiry + ttl);
    BOOST_TEST(!row.session_pid.has_value());
    BOOST_TEST(!row.session_start.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
