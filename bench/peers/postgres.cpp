// What waits inside of PostgreSQL: lease, an advisory lock with one durable commit a turn (the
// least that a lock can cost which is to survive a crash), and SELECT FOR UPDATE in an open
// transaction.
#include "contender.hpp"

#include <libpq-fe.h>

#include <stdexcept>

namespace peers {
namespace {

struct FreeResult {
    void operator()(PGresult *result) const { PQclear(result); }
};

struct Finish {
    void operator()(PGconn *connection) const { PQfinish(connection); }
};

// Statements to wait and to release, prepared: those that take the owner have a parameter.
struct Recipe {
    const char *name;
    const char *wait[2];
    const char *release[2];
};

constexpr Recipe recipes[] = {
    {"lease",
     {"CALL lease_acquire('turn', $1, '1 min')", nullptr},
     {"SELECT lease_release('turn', $1)", nullptr}},
    {"advisory_lock",
     {"SELECT pg_advisory_lock(2)", "SELECT pg_logical_emit_message(true, 'bench', 'x')"},
     {"SELECT pg_advisory_unlock(2)", nullptr}},
    {"for_update",
     {"BEGIN", "SELECT lock_until FROM shedlock WHERE name = 'turn' FOR UPDATE"},
     {"COMMIT", nullptr}},
};

class Postgres : public Waiter {
public:
    Postgres(const Recipe &recipe, std::string owner)
        : connection(PQconnectdb("")), recipe(recipe), owner(std::move(owner)) {
        if (PQstatus(connection.get()) != CONNECTION_OK)
            throw std::runtime_error(PQerrorMessage(connection.get()));
        for (const char *statement :
             {recipe.wait[0], recipe.wait[1], recipe.release[0], recipe.release[1]})
            if (statement)
                check(PQprepare(connection.get(), statement, statement, 0, nullptr), "");
    }

    void wait() override {
        run(recipe.wait[0], "");
        run(recipe.wait[1], "");
    }

    void release() override {
        run(recipe.release[0], "t");
        run(recipe.release[1], "t");
    }

private:
    // The first column of a row has to be as expected, if anything is.
    void check(PGresult *raw, const std::string &expected) {
        const std::unique_ptr<PGresult, FreeResult> result(raw);
        const ExecStatusType status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            throw std::runtime_error(PQerrorMessage(connection.get()));
        if (!expected.empty() && status == PGRES_TUPLES_OK &&
            expected != PQgetvalue(result.get(), 0, 0))
            throw std::runtime_error("postgres: the lock was not ours to release");
    }

    void run(const char *statement, const std::string &expected) {
        if (!statement)
            return;
        const char *parameters[] = {owner.c_str()};
        const int count = std::string(statement).find("$1") == std::string::npos ? 0 : 1;
        check(PQexecPrepared(connection.get(), statement, count, parameters, nullptr, nullptr, 0),
              expected);
    }

    std::unique_ptr<PGconn, Finish> connection;
    const Recipe &recipe;
    std::string owner;
};

} // namespace

std::unique_ptr<Waiter> postgres_waiter(const std::string &contender, const std::string &owner) {
    for (const Recipe &recipe : recipes)
        if (contender == recipe.name)
            return std::make_unique<Postgres>(recipe, owner);
    return nullptr;
}

} // namespace peers
