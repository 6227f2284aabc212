// A client: a process that takes the lease, writes a few times, and lets it go or forgets
// it. It tells its parent, through a pipe, what it is about to do and what came of it; so it
// can be stopped at the worst moments, and the parent has the history.
#ifndef LEASE_STRESS_CLIENT_HPP
#define LEASE_STRESS_CLIENT_HPP

#include "history.hpp"
#include "plan.hpp"

#include <sys/types.h>

namespace stress {

enum class Kind : int {
    granted,      // token, at: acquired_at
    observed,     // token, at
    holding,      // about to begin a transaction
    inside,       // in a transaction, behind the fence if there is one
    acknowledged, // token, id
    refused,      // token
    retried,      // a serialization failure or deadlock: the transaction is tried again
    surprised,    // text
};

// Written to the pipe in one piece.
struct Event {
    Kind kind;
    int client;
    Token token;
    std::int64_t id;
    Usec at;
    char text[200];
};

// What clients share: one lease and two tables.
constexpr const char *lease_name = "stress";
void make_tables(const Plan &plan);

// Starts a client; what it tells comes through the pipe's other end. It ends on SIGTERM.
pid_t start_client(const Plan &plan, int number, int pipe);

} // namespace stress

#endif
