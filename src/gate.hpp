// The gate of a lease: a lock in the server's lock manager, held to the end of the
// transaction, that keeps a new tenure out while the old one's work may still commit.
// Invariant: nobody waits for a row while holding a gate exclusively.
#ifndef LEASE_GATE_HPP
#define LEASE_GATE_HPP

#include <string_view>

#include "server.hpp"

namespace lease {

// Lock tags in the advisory space, told apart from users' advisory locks by their
// fourth field (pg_locks.objsubid). A name counts by the first 8 bytes of its SHA-256:
// nobody can find a second name that meets the first.
LOCKTAG gate_tag(std::string_view name);
LOCKTAG sequence_tag(); // who moves the sequence of the tokens up

// Takes it if nobody holds it in any mode. Never waits.
bool try_exclusive(const LOCKTAG &tag);

// Takes it, waiting. Errors: 55P03 by lock_timeout, 40P01, 57014.
void take_exclusive(const LOCKTAG &tag);

// Gives it back before the end of the transaction.
void give_back(const LOCKTAG &tag, LOCKMODE mode);

} // namespace lease

#endif
