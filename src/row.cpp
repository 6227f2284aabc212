#include "row.hpp"

namespace lease {

namespace {

struct EndingName {
    Ending ending;
    std::string_view name;
};

constexpr EndingName ending_names[] = {
    {Ending::released, "released"},
    {Ending::expired, "expired"},
    {Ending::broken, "broken"},
};

std::optional<std::string_view> text_at(const Table &table, Column column) {
    if (table.nulls[column])
        return std::nullopt;
    return text_view(table.values[column]);
}

std::optional<Usec> timestamp_at(const Table &table, Column column) {
    if (table.nulls[column])
        return std::nullopt;
    return DatumGetTimestampTz(table.values[column]);
}

std::int64_t count_at(const Table &table, Column column) {
    return table.nulls[column] ? 0 : DatumGetInt64(table.values[column]);
}

std::optional<Usec> length_at(const Table &table, Column column) {
    if (table.nulls[column])
        return std::nullopt;
    const Interval *value = DatumGetIntervalP(table.values[column]);
    const Duration length = keep_from({value->month, value->day, value->time});
    if (length.error != DurationError::none)
        return std::nullopt;
    return length.usec;
}

std::optional<Ending> ending_at(const Table &table, Column column) {
    const std::optional<std::string_view> name = text_at(table, column);
    for (const EndingName &known : ending_names)
        if (name && *name == known.name)
            return known.ending;
    return std::nullopt;
}

void put(Table &table, Column column, bool present, Datum value) {
    table.nulls[column] = !present;
    table.values[column] = value;
}

void put_text(Table &table, Column column, std::optional<std::string_view> text) {
    put(table, column, text.has_value(), text ? text_datum(*text) : (Datum)0);
}

void put_timestamp(Table &table, Column column, std::optional<Usec> instant) {
    put(table, column, instant.has_value(), TimestampTzGetDatum(instant.value_or(0)));
}

void put_length(Table &table, Column column, std::optional<Usec> length) {
    Interval *value = nullptr;
    if (length) {
        value = (Interval *)palloc0(sizeof(Interval));
        value->time = *length;
    }
    put(table, column, length.has_value(), IntervalPGetDatum(value));
}

void put_ending(Table &table, Column column, std::optional<Ending> ending) {
    std::optional<std::string_view> name;
    for (const EndingName &known : ending_names)
        if (ending && *ending == known.ending)
            name = known.name;
    put_text(table, column, name);
}

} // namespace

Datum text_datum(std::string_view text) {
    return PointerGetDatum(cstring_to_text_with_len(text.data(), (int)text.size()));
}

Row row_from(Table &table, HeapTuple tuple) {
    heap_deform_tuple(tuple, RelationGetDescr(table.heap), table.values, table.nulls);

    Row row;
    row.owner = text_at(table, col_owner);
    row.expiry = timestamp_at(table, col_expiry);
    row.token = count_at(table, col_token);
    row.granted_to = text_at(table, col_granted_to);
    row.acquired_at = timestamp_at(table, col_acquired_at);
    row.renewed_at = timestamp_at(table, col_renewed_at);
    row.ttl = length_at(table, col_ttl);
    if (!table.nulls[col_session_pid])
        row.session_pid = DatumGetInt32(table.values[col_session_pid]);
    row.session_start = timestamp_at(table, col_session_start);
    row.grants = count_at(table, col_grants);
    row.takeovers = count_at(table, col_takeovers);
    row.min_margin = length_at(table, col_min_margin);
    row.last_owner = text_at(table, col_last_owner);
    row.last_end = ending_at(table, col_last_end);
    return row;
}

void put_row(Table &table, const Row &row) {
    put_text(table, col_owner, row.owner);
    put_timestamp(table, col_expiry, row.expiry);
    put(table, col_token, true, Int64GetDatum(row.token));
    put_text(table, col_granted_to, row.granted_to);
    put_timestamp(table, col_acquired_at, row.acquired_at);
    put_timestamp(table, col_renewed_at, row.renewed_at);
    put_length(table, col_ttl, row.ttl);
    put(table, col_session_pid, row.session_pid.has_value(),
        Int32GetDatum(row.session_pid.value_or(0)));
    put_timestamp(table, col_session_start, row.session_start);
    put(table, col_grants, true, Int64GetDatum(row.grants));
    put(table, col_takeovers, true, Int64GetDatum(row.takeovers));
    put_length(table, col_min_margin, row.min_margin);
    put_text(table, col_last_owner, row.last_owner);
    put_ending(table, col_last_end, row.last_end);
}

} // namespace lease
