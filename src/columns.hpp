// The columns of dist_lock, told to C++ once. The install script says the same in
// SQL; opening the table compares the two.
#ifndef LEASE_COLUMNS_HPP
#define LEASE_COLUMNS_HPP

#include "server.hpp"

namespace lease {

enum Column : int { // zero-based: attribute number minus one
    col_name,
    col_owner,
    col_expiry,
    col_token,
    col_granted_to,
    col_acquired_at,
    col_renewed_at,
    col_ttl,
    col_session_pid,
    col_session_start,
    col_grants,
    col_takeovers,
    col_min_margin,
    col_last_owner,
    col_last_end,
    column_count,
};

struct ColumnShape {
    const char *name;
    Oid type;
};

constexpr ColumnShape column_shapes[column_count] = {
    {"name", TEXTOID},
    {"owner", TEXTOID},
    {"expiry", TIMESTAMPTZOID},
    {"token", INT8OID},
    {"granted_to", TEXTOID},
    {"acquired_at", TIMESTAMPTZOID},
    {"renewed_at", TIMESTAMPTZOID},
    {"ttl", INTERVALOID},
    {"session_pid", INT4OID},
    {"session_start", TIMESTAMPTZOID},
    {"grants", INT8OID},
    {"takeovers", INT8OID},
    {"min_margin", INTERVALOID},
    {"last_owner", TEXTOID},
    {"last_end", TEXTOID},
};

} // namespace lease

#endif
