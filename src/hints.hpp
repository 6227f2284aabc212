// Where this backend last saw a lease's row: without it, every look-up under an
// old snapshot would walk all the dead versions that the snapshot keeps alive.
// Invariant: a hint is only a hint. Who uses one checks the name of what is there.
#ifndef LEASE_HINTS_HPP
#define LEASE_HINTS_HPP

#include "core/tenure.hpp"

#include "server.hpp"

namespace lease {

// The place where the row of this name was last seen, or null.
const ItemPointerData *hint_for(std::string_view name);

void remember_hint(std::string_view name, const ItemPointerData &tid);

// After DDL, which moves rows or makes another table of the same name.
void forget_hints();

} // namespace lease

#endif
