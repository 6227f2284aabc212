// Why an owner is not the holder, in words for a message's detail.
#ifndef LEASE_REASONS_HPP
#define LEASE_REASONS_HPP

#include "operation.hpp"

namespace lease {

// What the lease is instead: completes `lease "x" is ...`.
const char *condition_of(const Answer &answer);

// The detail: one sentence, translated nowhere, in the current memory context.
const char *reason_of(const Answer &answer, const Claim &claim);

} // namespace lease

#endif
