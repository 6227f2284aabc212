// What happened in one run: what clients saw, and what the table says was committed.
// Invariant: writes are in the order of their commits. (All of them change one row, and
// keep it locked until they commit; its counter is their number.)
#ifndef LEASE_STRESS_HISTORY_HPP
#define LEASE_STRESS_HISTORY_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace stress {

using Usec = std::int64_t; // of the server's clock, since 1970
using Token = std::int64_t;

// A tenure began.
struct Grant {
    Token token;
    int client;
    Usec acquired_at;
};

// Not before this instant, the client was told that it holds the lease.
struct Observation {
    Token token;
    int client;
    Usec at;
};

// A write that was committed, by what it left in the table.
struct Write {
    std::int64_t number; // 1, 2, 3...
    Token token;
    int client;
    std::int64_t id;     // of this client, rising
    std::int64_t before; // how many writes its client had read of
};

// A write whose COMMIT was answered. It has to be in the table.
struct Acknowledged {
    int client;
    std::int64_t id;
};

// A write that was refused by the fence.
struct Refusal {
    Token token;
    int client;
};

struct History {
    std::vector<Grant> grants;
    std::vector<Observation> observations;
    std::vector<Acknowledged> acknowledged;
    std::vector<Refusal> refusals;
    std::vector<Write> writes;
    std::vector<std::string> surprises; // errors that no client should meet
};

} // namespace stress

#endif
