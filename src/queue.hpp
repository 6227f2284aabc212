// Waiting for a lease, first come first served, and watching one.
// Invariants: only the head of the queue looks at the lease; while a call waits it
// holds no snapshot of its own, no buffer and no lock on the table; between its last
// wait and the grant it has asked whether its client is still there.
#ifndef LEASE_QUEUE_HPP
#define LEASE_QUEUE_HPP

#include "arguments.hpp"

namespace lease {

struct Wanted {
    Oid function; // which was called, and tells the table
    std::string_view name;
    std::string_view owner;
    Usec ttl;
};

// Waits its turn, at most until the deadline, and returns the token; nothing: the time was up.
// `own_row_is_busy`: an attempt has seen that the owner holds it, and somebody its row.
// `to_the_end`: the transaction ends right after this call, so the place in the queue may be
// kept until then.
std::optional<std::int64_t> acquire_lease(const Wanted &wanted, std::optional<Usec> deadline,
                                          bool own_row_is_busy, bool to_the_end);

// Waits until the live token is another than `known` (nothing: nobody holds it), at most until
// the deadline, and returns the live token then, or `known`.
std::optional<std::int64_t> watch_lease(Oid function, std::string_view name,
                                        std::optional<std::int64_t> known,
                                        std::optional<Usec> deadline);

} // namespace lease

#endif
