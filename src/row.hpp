// A row of dist_lock as the server stores it, and as the core reads it.
#ifndef LEASE_ROW_HPP
#define LEASE_ROW_HPP

#include "core/tenure.hpp"
#include "table.hpp"

namespace lease {

// The texts of the result point into the tuple (or into a detoasted copy in the
// current memory context). A value that no lease can have, made by hand, reads as NULL.
Row row_from(Table &table, HeapTuple tuple);

// Puts all columns but the name into the table's room for one row.
void put_row(Table &table, const Row &row);

// The bytes of a text datum, detoasted in the current memory context if need be.
inline std::string_view text_view(Datum datum) {
    const text *value = DatumGetTextPP(datum);
    return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
}

// A text datum in the current memory context.
Datum text_datum(std::string_view text);

} // namespace lease

#endif
