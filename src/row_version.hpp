// Which version of a row is visible, along the versions on one page.
#ifndef LEASE_ROW_VERSION_HPP
#define LEASE_ROW_VERSION_HPP

#include "server.hpp"

namespace lease {

// Follows the versions of a row from `tid` within its page (the buffer, pinned and
// locked in share mode) to the one that the snapshot sees, and describes it in
// `tuple`. It may start in the middle of a chain, and leaves no predicate lock,
// which is what the server's own heap_hot_search_buffer() would not do.
bool visible_version(Relation heap, Buffer buffer, const ItemPointerData &tid, Snapshot snapshot,
                     HeapTuple tuple);

} // namespace lease

#endif
