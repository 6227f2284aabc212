#include "duration.hpp"

#include <limits>

namespace lease {

namespace {

constexpr Usec usec_per_day = Usec{24} * 60 * 60 * 1000000;

template <typename T> constexpr bool extreme(T value) noexcept {
    return value == std::numeric_limits<T>::max() || value == std::numeric_limits<T>::min();
}

Duration duration_from(IntervalFields fields) noexcept {
    if (extreme(fields.months) && extreme(fields.days) && extreme(fields.usec))
        return {0, DurationError::infinite};
    if (fields.months != 0)
        return {0, DurationError::months};

    Usec days = 0;
    Usec total = 0;
    if (__builtin_mul_overflow(Usec{fields.days}, usec_per_day, &days) ||
        __builtin_add_overflow(days, fields.usec, &total))
        return {0, fields.days < 0 ? DurationError::negative : DurationError::too_long};
    if (total < 0)
        return {total, DurationError::negative};
    return {total, DurationError::none};
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

} // namespace lease
