// How long a wait is.
#include "unit.hpp"

using namespace lease;

BOOST_AUTO_TEST_SUITE(waits)

BOOST_AUTO_TEST_CASE(lengths) {
    constexpr Usec day = Usec{86400} * 1000000;
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
