#include "arguments.hpp"

#include "row.hpp"
#include "settings.hpp"

namespace lease {

namespace {

void refuse_null(FunctionCallInfo fcinfo, int number, const char *what) {
    if (PG_ARGISNULL(number))
        ereport(ERROR,
                (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", what)));
}

std::string_view checked_text(Datum datum, const char *what) {
    const std::string_view view = text_view(datum);
    if (view.empty())
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be empty", what)));
    if (view.size() > longest_name)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s is too long", what),
                 errdetail("It has %zu bytes; %zu is the most.", view.size(), longest_name)));
    return view;
}

void refuse_duration(DurationError error, const char *what) {
    switch (error) {
    case DurationError::none:
        return;
    case DurationError::infinite:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must not be infinite", what)));
    case DurationError::months:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must not have months or years", what),
                        errdetail("A month has no fixed length."),
                        errhint("Give it in days, of 24 hours each, or smaller units.")));
    case DurationError::negative:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must not be negative", what)));
    case DurationError::zero:
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be greater than zero", what)));
    case DurationError::too_long:
        ereport(ERROR,
                (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW), errmsg("%s is out of range", what)));
    }
}

void refuse_beyond_max_ttl(Usec length, const char *what) {
    if (max_ttl() > 0 && length > max_ttl())
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s is longer than \"lease.max_ttl\" allows", what),
                        errdetail("The most is %g s.", (double)max_ttl() / 1000000.0)));
}

IntervalFields interval_fields(Datum datum) {
    const Interval *value = DatumGetIntervalP(datum);
    return {value->month, value->day, value->time};
}

} // namespace

std::string_view text_argument(FunctionCallInfo fcinfo, int number, const char *what) {
    refuse_null(fcinfo, number, what);
    return checked_text(PG_GETARG_DATUM(number), what);
}

Usec ttl_argument(FunctionCallInfo fcinfo, int number) {
    refuse_null(fcinfo, number, "ttl");
    const Duration ttl = ttl_from(interval_fields(PG_GETARG_DATUM(number)));
    refuse_duration(ttl.error, "ttl");
    refuse_beyond_max_ttl(ttl.usec, "ttl");
    return ttl.usec;
}

std::optional<Usec> keep_argument(FunctionCallInfo fcinfo, int number) {
    if (PG_ARGISNULL(number))
        return std::nullopt;
    const Duration keep = keep_from(interval_fields(PG_GETARG_DATUM(number)));
    refuse_duration(keep.error, "keep");
    refuse_beyond_max_ttl(keep.usec, "keep");
    return keep.usec;
}

Usec wait_argument(FunctionCallInfo fcinfo, int number, const char *what) {
    refuse_null(fcinfo, number, what);
    const Duration wait = wait_from(interval_fields(PG_GETARG_DATUM(number)));
    refuse_duration(wait.error, what);
    return wait.usec;
}

std::int64_t required_token_argument(FunctionCallInfo fcinfo, int number) {
    refuse_null(fcinfo, number, "token");
    return PG_GETARG_INT64(number);
}

std::optional<std::int64_t> token_argument(FunctionCallInfo fcinfo, int number) {
    if (PG_ARGISNULL(number))
        return std::nullopt;
    return PG_GETARG_INT64(number);
}

Names names_argument(FunctionCallInfo fcinfo, int number) {
    refuse_null(fcinfo, number, "names");
    ArrayType *array = PG_GETARG_ARRAYTYPE_P(number);
    Datum *elements = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &count);

    auto *names = (std::string_view *)palloc(count * sizeof(std::string_view));
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            ereport(ERROR,
                    (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("name must not be null")));
        names[i] = checked_text(elements[i], "name");
    }
    return {count, names};
}

} // namespace lease
