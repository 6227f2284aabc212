// Why an owner is not the holder, in words for a message's detail.
#ifndef LEASE_REASONS_HPP
#define LEASE_REASONS_HPP

#include "operation.hpp"

namespace lease {

// What the lease is instead: completes `lease "x" is ...`.
const char *condition_of(const Answer &answer);

// The detail: one sentence, translated nowhere, in the current memory context.
const char *reason_of(const Answer &answer, const Claim &claim);

// Whose tenure the row's last one was, for the server's log.
const char *tenure_in_words(const Row &row);

// "3.2 s ago" with a blank before it; nothing if the instant is unknown.
const char *since(const std::optional<Usec> &instant, Usec now);

} // namespace lease

#endif
