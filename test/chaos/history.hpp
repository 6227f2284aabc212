// What happened in one run: what contenders asked and were told, and what the tables say was
// committed. A contender is one owner; when a client starts anew it becomes another one.
// Invariant: an operation was done, if it was, between `asked` and `answered`.
#ifndef LEASE_CHAOS_HISTORY_HPP
#define LEASE_CHAOS_HISTORY_HPP

#include "moments.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace chaos {

using Token = std::int64_t;

enum class Kind : int {
    tried,    // lease_try, lease_try_any
    acquired, // lease_acquire
    renewed,  // lease_renew, lease_renew_all
    released,
    looked,  // lease_token
    watched, // lease_watch: somebody's token
    fenced,
    attached,
    wrote,  // a fenced write
    broken, // lease_break
};

enum class Outcome : int { unknown, yes, no, failed };

struct Operation {
    Kind kind = Kind::tried;
    Outcome outcome = Outcome::unknown;
    int contender = 0;
    int lease = 0;
    std::int64_t id = 0;          // of this contender, rising as it asks
    std::int64_t transaction = 0; // of this contender; 0: a statement of its own
    Token token = 0;              // that it was told, or stated; 0: none
    Usec length = -1;             // ttl; of a release, keep, or -1
    Usec asked = 0;
    Usec answered = never;
    bool undone = false; // by ROLLBACK TO SAVEPOINT
};

// A block whose COMMIT was sent. Without one of these, it was rolled back.
struct Transaction {
    int contender = 0;
    std::int64_t id = 0;
    Outcome outcome = Outcome::unknown; // yes: committed
    Usec asked = 0;
    Usec answered = never;
};

// A write that was committed, by what it left in the table. (All of one lease change one row,
// and keep it locked until they commit; its counter is their number.)
struct Write {
    int lease;
    std::int64_t number; // 1, 2, 3...
    Token token;
    int contender;
    std::int64_t id;     // of the operation
    std::int64_t before; // how many writes its contender had read of
};

struct History {
    int leases = 0;
    std::vector<Operation> operations;
    std::vector<Transaction> transactions;
    std::vector<Write> writes;
    std::vector<Shift> shifts;          // of the server's clock
    std::vector<Span> crashes;          // of the server, some time within these
    std::vector<std::string> surprises; // errors that no client should meet
    std::vector<std::string> leftovers; // locks that losing tries left behind
    std::vector<std::string> ids;       // losing tries that took a transaction ID
    Span calm{0, 0};                    // when nothing went wrong yet
    Span healing{0, 0};                 // when nothing went wrong any more
};

} // namespace chaos

#endif
