// Our own statements on dist_lock, where the executor has to take part: rows that
// come and go fire triggers and constraints.
// Invariant: they run as the table's owner, name everything with its schema, and
// see the present whatever the isolation level.
#ifndef LEASE_STATEMENT_HPP
#define LEASE_STATEMENT_HPP

#include "server.hpp"

namespace lease {

// A prepared statement that is kept for as long as its text and the table stay the same. Make it
// static.
struct Statement {
    SPIPlanPtr plan;
    char *text;                     // in TopMemoryContext
    std::uint64_t age;              // of the table
    int running;                    // how often, one run inside the other
    LocalTransactionId transaction; // in which that counts: an error leaves the count behind
};

struct Parameters {
    int count;
    const Oid *types;
    Datum *values;
    const char *nulls;    // 'n' or ' ' for each; null: none is NULL
    bool plan_every_time; // the plan depends on the values, and on the table's size
};

// Runs it, and returns how many rows it changed. Errors: whatever it raises.
std::uint64_t run_as_owner(Statement &statement, Relation table, const char *text,
                           const Parameters &parameters);

// The identity of the table's owner, and back again. Code that an administrator hung on the table
// (triggers, checks, expressions of indexes) runs with the owner's rights and no others, and with
// a search_path in which no caller can put anything. After an error the server goes back itself.
struct Identity {
    Oid user;
    int security;
    int settings; // nesting level of the settings
};
// `restrictions` are added to the security context.
Identity become_owner_of(Relation table, int restrictions);
void become_again(const Identity &identity);

// The table's name for a statement.
const char *qualified_name(Relation table);

} // namespace lease

#endif
