// Intervals read as a ttl and as a keep: every border of days, microseconds and their sum.

#include "unit.hpp"

#include <cstdlib>
#include <random>
#include <string>
#include <time.h>

using namespace lease;

namespace {

constexpr Usec second = 1000000;
constexpr Usec hour = 3600 * second;
constexpr Usec day = 24 * hour;

constexpr std::int32_t days_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t days_min = std::numeric_limits<std::int32_t>::min();
constexpr Usec usec_max = std::numeric_limits<Usec>::max();
constexpr Usec usec_min = std::numeric_limits<Usec>::min();

// The most whole days that fit, and what fits beside them.
constexpr std::int32_t whole_days = 106751991;
constexpr Usec beside_whole_days = 14454775807;

static_assert(noexcept(ttl_from(IntervalFields{})) &&noexcept(keep_from(IntervalFields{})));

void check_duration(IntervalFields fields, Usec usec) {
    BOOST_TEST_CONTEXT(fields.months << " months, " << fields.days << " days, " << fields.usec
                                     << " usec") {
        const Duration ttl = ttl_from(fields);
        const Duration keep = keep_from(fields);
        BOOST_TEST(keep.error == DurationError::none);
        BOOST_TEST(keep.usec == usec);
        BOOST_TEST(ttl.error == (usec == 0 ? DurationError::zero : DurationError::none));
        BOOST_TEST(ttl.usec == usec);
    }
}

void check_refused(IntervalFields fields, DurationError why) {
    BOOST_TEST_CONTEXT(fields.months << " months, " << fields.days << " days, " << fields.usec
                                     << " usec") {
        BOOST_TEST(ttl_from(fields).error == why);
        BOOST_TEST(keep_from(fields).error == why);
    }
}

// The same answer by another way: in whole seconds, which cannot overflow.
Duration keep_by_seconds(std::int32_t days, Usec usec) {
    std::int64_t seconds = std::int64_t{days} * 86400 + usec / second;
    Usec rest = usec % second;
    if (rest < 0) {
        --seconds;
        rest += second;
    }
    if (seconds < 0)
        return {0, DurationError::negative};
    if (seconds > usec_max / second || (seconds == usec_max / second && rest > usec_max % second))
        return {0, DurationError::too_long};
    return {seconds * second + rest, DurationError::none};
}

} // namespace

BOOST_AUTO_TEST_SUITE(duration)

BOOST_AUTO_TEST_CASE(zero_is_a_keep_but_no_ttl) {
    check_duration({0, 0, 0}, 0);
    check_duration({0, 1, -day}, 0);
    check_duration({0, -1, day}, 0);
    check_duration({0, whole_days, -whole_days * day}, 0);
    check_duration({0, -whole_days, whole_days * day}, 0);
}

BOOST_AUTO_TEST_CASE(kept_to_the_microsecond) {
    check_duration({0, 0, 1}, 1);
    check_duration({0, 0, 400000}, 400000); // 0.4 s
    check_duration({0, 0, 30 * second}, 30 * second);
    check_duration({0, 1, 0}, 86400000000);
    check_duration({0, 1, 1}, 86400000001);
    check_duration({0, 365, 0}, 365 * day);
}

BOOST_AUTO_TEST_CASE(negative) {
    check_refused({0, 0, -1}, DurationError::negative);
    check_refused({0, 0, -second}, DurationError::negative);
    check_refused({0, -1, 0}, DurationError::negative);
    check_refused({0, -1, -1}, DurationError::negative);
}

// '1 day -23 hours' and its like: the sum counts, not the sign of a field.
BOOST_AUTO_TEST_CASE(mixed_signs) {
    check_duration({0, 1, -23 * hour}, hour);
    check_duration({0, 1, -day + 1}, 1);
    check_duration({0, -1, 25 * hour}, hour);
    check_duration({0, -1, day + 1}, 1);
    check_refused({0, 1, -25 * hour}, DurationError::negative);
    check_refused({0, 1, -day - 1}, DurationError::negative);
    check_refused({0, -1, 23 * hour}, DurationError::negative);
    check_refused({0, -1, day - 1}, DurationError::negative);
}

BOOST_AUTO_TEST_CASE(months_have_no_length) {
    check_refused({1, 0, 0}, DurationError::months);
    check_refused({-1, 0, 0}, DurationError::months);
    check_refused({1, -29, 0}, DurationError::months);
    check_refused({1, -31, 0}, DurationError::months);
    check_refused({12 * 100000, 0, 0}, DurationError::months);
    check_refused({days_max, 0, 0}, DurationError::months);
    check_refused({days_min, 0, 0}, DurationError::months);
    check_refused({1, days_max, usec_max}, DurationError::months);
    check_refused({-1, days_min, usec_min}, DurationError::months);
}

BOOST_AUTO_TEST_CASE(infinite_is_every_field_at_the_same_extreme) {
    check_refused({days_max, days_max, usec_max}, DurationError::infinite);
    check_refused({days_min, days_min, usec_min}, DurationError::infinite);

    check_refused({days_max, days_max, usec_max - 1}, DurationError::months);
    check_refused({days_max, days_max - 1, usec_max}, DurationError::months);
    check_refused({days_max - 1, days_max, usec_max}, DurationError::months);
    check_refused({days_min, days_min, usec_min + 1}, DurationError::months);
    check_refused({days_max, days_min, usec_max}, DurationError::months);
    check_refused({days_min, days_max, usec_min}, DurationError::months);
    check_refused({0, days_max, usec_max}, DurationError::too_long);
    check_refused({0, days_min, usec_min}, DurationError::negative);
}

BOOST_AUTO_TEST_CASE(borders_of_64_bits) {
    check_duration({0, 0, usec_max}, usec_max);
    check_duration({0, 0, usec_max - 1}, usec_max - 1);
    check_duration({0, 1, usec_max - day}, usec_max);
    check_refused({0, 1, usec_max - day + 1}, DurationError::too_long);
    check_refused({0, 1, usec_max}, DurationError::too_long);
    check_duration({0, -1, usec_max}, usec_max - day);

    check_duration({0, whole_days, 0}, whole_days * day);
    check_duration({0, whole_days, beside_whole_days}, usec_max);
    check_refused({0, whole_days, beside_whole_days + 1}, DurationError::too_long);
    check_refused({0, whole_days + 1, 0}, DurationError::too_long);
    check_refused({0, 2000000000, 0}, DurationError::too_long);
    check_refused({0, days_max, 0}, DurationError::too_long);
    check_refused({0, days_max, usec_min}, DurationError::too_long);

    check_refused({0, 0, usec_min}, DurationError::negative);
    check_refused({0, -1, usec_min}, DurationError::negative);
    check_refused({0, -whole_days, 0}, DurationError::negative);
    check_refused({0, -whole_days, -beside_whole_days - 1}, DurationError::negative);
    check_refused({0, -whole_days, -beside_whole_days - 2}, DurationError::negative);
    check_refused({0, -whole_days - 1, 0}, DurationError::negative);
    check_refused({0, -whole_days - 1, usec_max}, DurationError::negative);
    check_refused({0, -2000000000, 0}, DurationError::negative);
    check_refused({0, days_min, 0}, DurationError::negative);
    check_refused({0, days_min, usec_max}, DurationError::negative);
}

// The days alone pass 64 bits, their sum with the rest does not.
BOOST_AUTO_TEST_CASE(days_that_only_the_sum_makes_fit) {
    const Usec days_less_all = 71945224192; // (whole_days + 1) days - 2^63 microseconds
    check_duration({0, whole_days + 1, usec_min}, days_less_all);
    check_duration({0, whole_days + 1, -day}, whole_days * day);
    check_duration({0, whole_days + 1, -(day - beside_whole_days)}, usec_max);
    check_refused({0, whole_days + 1, -(day - beside_whole_days) + 1}, DurationError::too_long);
    check_duration({0, 2 * whole_days, usec_min}, whole_days * day - beside_whole_days - 1);
    check_refused({0, 2 * whole_days + 1, usec_min}, DurationError::too_long);
    check_duration({0, -whole_days, usec_max}, beside_whole_days);
}

BOOST_AUTO_TEST_CASE(a_day_is_24_hours_everywhere) {
    const char *before = std::getenv("TZ");
    const std::string saved = before == nullptr ? "" : before;
    for (const char *zone : {"UTC", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"}) {
        setenv("TZ", zone, 1);
        tzset();
        BOOST_TEST_CONTEXT(zone) {
            for (std::int32_t days = 0; days <= 366; ++days)
                BOOST_TEST(keep_from({0, days, 0}).usec == days * 86400000000);
        }
    }
    if (before == nullptr)
        unsetenv("TZ");
    else
        setenv("TZ", saved.c_str(), 1);
    tzset();
}

BOOST_AUTO_TEST_CASE(any_days_and_microseconds) {
    std::mt19937_64 random(1);
    const Usec edges[] = {usec_min, -day, -1, 0, 1, beside_whole_days, day, usec_max};
    const std::int32_t day_edges[] = {days_min, -2 * whole_days, -whole_days,    -1,      0,
                                      1,        whole_days,      2 * whole_days, days_max};
    int wrong = 0;
    for (int i = 0; i < 50000; ++i) {
        // Wrapping is wanted: an edge and a little, or anything at all.
        const std::uint64_t near = random() % 7 - 3;
        Usec usec = static_cast<Usec>(random());
        if (random() % 2 == 0)
            usec = static_cast<Usec>(static_cast<std::uint64_t>(edges[random() % 8]) + near);
        std::int32_t days = static_cast<std::int32_t>(random());
        if (random() % 2 == 0)
            days = static_cast<std::int32_t>(static_cast<std::uint32_t>(day_edges[random() % 9]) +
                                             static_cast<std::uint32_t>(random() % 7 - 3));

        const Duration should = keep_by_seconds(days, usec);
        const Duration is = keep_from({0, days, usec});
        const bool same = is.error == should.error &&
                          (should.error != DurationError::none || is.usec == should.usec);
        if (!same && ++wrong == 1)
            BOOST_ERROR("keep of " << days << " days and " << usec << " usec is " << is.usec << ", "
                                   << is.error << ", not " << should.usec << ", " << should.error);
    }
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
