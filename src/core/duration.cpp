#include "duration.hpp"

#include <limits>

namespace lease {

namespace {

constexpr Usec usec_per_day = Usec{24} * 60 * 60 * 1000000;

// -infinity and infinity of the server: every field at the same extreme.
bool is_infinite(IntervalFields fields) noexcept {
    using Int = std::numeric_limits<std::int32_t>;
    using Long = std::numeric_limits<Usec>;
    return (fields.months == Int::max() && fields.days == Int::max() &&
            fields.usec == Long::max()) ||
           (fields.months == Int::min() && fields.days == Int::min() && fields.usec == Long::min());
}

Duration sum_of(std::int64_t whole_days, Usec usec) noexcept {
    // Beside a rest that is not negative, the days alone tell the sign.
    Usec days = whole_days + usec / usec_per_day;
    Usec rest = usec % usec_per_day;
    if (rest < 0) {
        --days;
        rest += usec_per_day;
    }
    if (days < 0)
        return {0, DurationError::negative};

    Usec total = 0;
    if (__builtin_mul_overflow(days, usec_per_day, &total) ||
        __builtin_add_overflow(total, rest, &total))
        return {0, DurationError::too_long};
    return {total, DurationError::none};
}

Duration duration_from(IntervalFields fields) noexcept {
    if (is_infinite(fields))
        return {0, DurationError::infinite};
    if (fields.months != 0)
        return {0, DurationError::months};
    return sum_of(fields.days, fields.usec);
}

} // namespace

Duration ttl_from(IntervalFields fields) noexcept {
    const Duration d = duration_from(fields);
    if (d.error == DurationError::none && d.usec == 0)
        return {0, DurationError::zero};
    return d;
}

Duration keep_from(IntervalFields fields) noexcept {
    return duration_from(fields);
}

Duration wait_from(IntervalFields fields) noexcept {
    const Duration wait = sum_of(std::int64_t{fields.months} * 30 + fields.days, fields.usec);
    if (wait.error == DurationError::too_long)
        return {std::numeric_limits<Usec>::max(), DurationError::none};
    return wait;
}

} // namespace lease
