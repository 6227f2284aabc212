// Leases that are bound to a session: what the keeper owes to them, and when. And how long a wait
// is.
#include "unit.hpp"

using namespace lease;

namespace lease {

inline std::ostream &operator<<(std::ostream &out, Care care) {
    constexpr const char *names[] = {"none", "renew", "release", "unbind"};
    return out << names[static_cast<int>(care)];
}

} // namespace lease

namespace {

constexpr Usec second = 1000000;
constexpr Usec ttl = 30 * second;
constexpr Usec expiry = 100 * second;
constexpr Usec due = expiry - 20 * second; // two thirds of the ttl are left
constexpr Usec early = ttl / 20;           // what is almost due is done as well

Row bound_row() {
    Row row;
    row.owner = "alice";
    row.expiry = expiry;
    row.token = 7;
    row.ttl = ttl;
    row.session_pid = 4711;
    row.session_start = 900;
    return row;
}

} // namespace

BOOST_AUTO_TEST_SUITE(keeping)

BOOST_AUTO_TEST_CASE(a_living_session) {
    const Row row = bound_row();
    BOOST_TEST(*next_care(row) == due);
    BOOST_TEST(care_for(row, true, due - early - 1) == Care::none);
    BOOST_TEST(care_for(row, true, due - early) == Care::renew);
    BOOST_TEST(care_for(row, true, due) == Care::renew);
    BOOST_TEST(care_for(row, true, expiry - 1) == Care::renew);
}

BOOST_AUTO_TEST_CASE(a_session_that_has_gone) {
    const Row row = bound_row();
    BOOST_TEST(care_for(row, false, 0) == Care::release);
    BOOST_TEST(care_for(row, false, expiry - 1) == Care::release);
}

// An expired tenure is lost, whoever lives: nothing renews it, and nothing releases it either.
BOOST_AUTO_TEST_CASE(a_tenure_that_is_over) {
    for (const bool lives : {true, false}) {
        BOOST_TEST(care_for(bound_row(), lives, expiry) == Care::unbind);
        BOOST_TEST(care_for(bound_row(), lives, expiry + 1) == Care::unbind);
        Row released = bound_row();
        released.owner.reset();
        BOOST_TEST(care_for(released, lives, 0) == Care::unbind);
        Row no_expiry = bound_row();
        no_expiry.expiry.reset();
        BOOST_TEST(care_for(no_expiry, lives, 0) == Care::unbind);
    }
}

BOOST_AUTO_TEST_CASE(rows_that_want_no_renewal) {
    Row no_ttl = bound_row();
    no_ttl.ttl.reset();
    BOOST_TEST(!next_care(no_ttl));
    BOOST_TEST(care_for(no_ttl, true, expiry - 1) == Care::none);

    Row for_ever = bound_row();
    for_ever.expiry = after_all_time;
    BOOST_TEST(!next_care(for_ever));
    BOOST_TEST(care_for(for_ever, true, timestamp_end - 1) == Care::none);
    BOOST_TEST(care_for(for_ever, false, 0) == Care::release);
}

BOOST_AUTO_TEST_CASE(binding_changes_the_session_only) {
    const Row row = bound_row();
    const Row moved = bound(row, 12, 34);
    BOOST_TEST(*moved.session_pid == 12);
    BOOST_TEST(*moved.session_start == 34);
    BOOST_TEST(differences(bound(moved, 4711, 900), row) == "");

    const Row free = unbound(row);
    BOOST_TEST(!free.session_pid);
    BOOST_TEST(!free.session_start);
    BOOST_TEST(differences(bound(free, 4711, 900), row) == "");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(waits)

BOOST_AUTO_TEST_CASE(lengths) {
    constexpr Usec day = Usec{86400} * second;
    BOOST_TEST(wait_from({0, 0, 0}).usec == 0);
    BOOST_TEST(wait_from({0, 0, 0}).error == DurationError::none);
    BOOST_TEST(wait_from({1, 0, 0}).usec == 30 * day);
    BOOST_TEST(wait_from({1, -29, 1}).usec == day + 1);
    BOOST_TEST(wait_from({1200, 0, 0}).usec == 36000 * day); // '100 years'
}

BOOST_AUTO_TEST_CASE(for_ever) {
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    for (const IntervalFields fields : {IntervalFields{0, most, 0}, IntervalFields{most, 0, 0},
                                        IntervalFields{most, most, after_all_time}}) {
        BOOST_TEST(wait_from(fields).error == DurationError::none);
        BOOST_TEST(wait_from(fields).usec == after_all_time);
    }
}

BOOST_AUTO_TEST_CASE(negative) {
    constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
    BOOST_TEST(wait_from({0, 0, -1}).error == DurationError::negative);
    BOOST_TEST(wait_from({-1, 29, 0}).error == DurationError::negative);
    BOOST_TEST(wait_from({least, least, before_all_time}).error == DurationError::negative);
}

BOOST_AUTO_TEST_SUITE_END()
