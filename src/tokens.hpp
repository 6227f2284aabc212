// Fencing tokens.
// Invariant: a token drawn for a lease is larger than every token that the lease
// ever had, in its row or before its row was deleted.
#ifndef LEASE_TOKENS_HPP
#define LEASE_TOKENS_HPP

#include "core/tenure.hpp"
#include "table.hpp"

namespace lease {

// Draws the next token, for a lease with this row (null: without one). The caller
// holds the lease's gate. Errors: 22003 if there is none left.
std::int64_t draw_token(const Table &table, const Row *row);

} // namespace lease

#endif
