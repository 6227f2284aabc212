// The table dist_lock, opened for one call.
// Invariant: what is opened belongs to the same extension as the called function
// and has the columns that columns.hpp says, and no lock on it outlives a call
// that writes nothing.
#ifndef LEASE_TABLE_HPP
#define LEASE_TABLE_HPP

#include <cstdint>

#include "columns.hpp"

namespace lease {

struct Table {
    Relation heap;
    LOCKMODE lock;  // that it is open with
    Relation index; // the primary key; null until somebody looks by it
    Oid sequence;   // of the tokens
    Oid sessions;   // the index of the leases that are bound to a session; invalid if dropped
    Datum *values;  // room for one row
    bool *nulls;
    bool changes; // so its locks are kept to the end of the transaction, like those of the change
};

// Installs the callback that notices DDL; called once, when the library is loaded.
void watch_catalog_changes();

// Rises whenever the table was altered, as far as this session knows.
std::uint64_t table_age();

// The table in the schema of that function; invalid if one of them is not there (any more).
Oid find_table(Oid function);

// Opens the table in the schema of the called function, for a look that may lead to a change
// (AccessShareLock), or for a change that is to be expected (RowExclusiveLock).
// Errors: 42P01 if it is not there, 55000 if somebody altered it beyond recognition, or the
// extension has another major version than this library.
Table open_table(Oid function, LOCKMODE lock);

// Closes it, and lets its locks go if nothing was to be changed.
void close_table(Table &table);

// The index of the leases that are bound to a session, opened (AccessShareLock); to be closed by
// the caller. Errors: 55000 if it was dropped.
Relation open_session_index(const Table &table);

// The primary key's index, opened (AccessShareLock) at the first call.
// Errors: 55000 if there is none on the name alone.
Relation primary_key(Table &table);

// Closes it, if it is open. To be done before a stronger lock on the table is waited for:
// REINDEX locks the table first and then waits for whoever has the index.
void close_index(Table &table);

} // namespace lease

#endif
