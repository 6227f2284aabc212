// What the keeper could not do, and when it tries that again.
// Invariant: what fails for good is tried, and logged, every few seconds at the most; what fails
// once is tried again with less delay than a short tenure has left.
#ifndef LEASE_FAILURES_HPP
#define LEASE_FAILURES_HPP

#include "core/tenure.hpp"

#include "server.hpp"

namespace lease {

// When to try again what has failed without a break since then (0: not before).
Usec after_failure(Usec &since);

// The leases whose care has failed, by name.
Usec note_failure(std::string_view name); // gives when to try it again
void forget_failure(std::string_view name);
void forget_old_failures();

// When the lease may be tried again; nothing if it did not fail the last time.
std::optional<Usec> retry_of(std::string_view name, Usec now);

} // namespace lease

#endif
