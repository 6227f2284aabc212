// Rows of dist_lock: find, lock, change, insert.
// Invariant: a row is changed only from what was read of its newest version, after
// every wait was over.
#ifndef LEASE_DIST_LOCK_HPP
#define LEASE_DIST_LOCK_HPP

#include "row.hpp"
#include "wait.hpp"

namespace lease {

// A row as it is at this moment: committed, or this transaction's own. The texts
// in `row` are good until the look is let go.
struct Look {
    Buffer buffer = InvalidBuffer; // pinned, if there is a row
    HeapTupleData tuple = {};
    Row row;
    bool locked = false;          // by this transaction
    std::optional<bool> entitled; // whether the caller may act on the row, once that was asked

    const Row *row_if_any() const { return BufferIsValid(buffer) ? &row : nullptr; }
};

// Looks a lease up, takes no lock. Does not miss a row that another session moves in
// this very instant.
Look find(Table &table, std::string_view name);

// Whether a row of this name exists that has not committed yet.
bool is_being_inserted(Table &table, std::string_view name);

// Visits the rows that are bound to a session, and misses none.
void for_each_bound(Table &table, void (*visit)(const Row &, std::string_view name, void *arg),
                    void *arg);

// The row's tenure before this transaction, by the snapshot that a REPEATABLE READ or
// SERIALIZABLE transaction keeps.
struct SeenTenure {
    std::optional<std::int64_t> token; // nothing: there was no row
    bool ended = false;                // by a release or break
};
SeenTenure tenure_before_transaction(Table &table, std::string_view name);

// Whether no other version of the row has been committed since the look.
bool is_unchanged(const Look &look);

void let_go(Look &look);

enum class Locking { free, busy, changed };

// Makes the row ready to be changed, without waiting for it: `free` if nobody else changes it or
// has locked it (foreign keys' locks do not count, but for the exclusive mode). It is locked only
// where that says more than a look: change() finds out whether somebody was faster. Keeps
// RowExclusiveLock on the table if it is free; after a wait for that, which the table keeps until
// it is closed, the look is let go and the row counts as `changed`.
Locking lock_row(Table &table, Look &look, LockTupleMode mode = LockTupleNoKeyExclusive);

// The transactions that lock or change the row, ended ones and our own among them.
struct Lockers {
    int count;
    MultiXactMember *members;
};
Lockers lockers_of(const Look &look);

// Waits for them to end, as long as the patience lasts. Locks nothing itself: look
// again after it. Hold no look meanwhile: a pin could hold vacuum up, which no
// deadlock detector would see. Errors: 55P03, 40P01, 57014.
void wait_for_lockers(const Lockers &lockers, const Patience &patience);

// Lets the lock go that lock_row() took on the table of a row that is not changed after all.
void leave_unchanged(Table &table);

// Changes a row that lock_row() found free, and lets the look go. False: somebody was faster.
bool change(Table &table, std::string_view name, Look &look, const Row &next);

// Inserts the row of a lease that has none. Returns false if another session was
// faster (or a trigger suppressed it). Errors: what triggers and constraints of an
// administrator raise; 27000 if they changed the row.
bool insert(Table &table, std::string_view name, const Row &row);

} // namespace lease

#endif
