// What waits inside of PostgreSQL: lease, an advisory lock with one durable commit a turn (the
// least that a lock can cost which is to survive a crash), and SELECT FOR UPDATE in an open
// transaction. And lease by a function call of the protocol: without SQL, as a client library of
// its own could.
#include "contender.hpp"

#include <libpq-fe.h>

#include <array>
#include <cstring>
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

using Connection = std::unique_ptr<PGconn, Finish>;

Connection connect() {
    Connection connection(PQconnectdb(""));
    if (PQstatus(connection.get()) != CONNECTION_OK)
        throw std::runtime_error(PQerrorMessage(connection.get()));
    return connection;
}

class Postgres : public Waiter {
public:
    Postgres(const Recipe &recipe, std::string owner)
        : connection(connect()), recipe(recipe), owner(std::move(owner)) {
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

    Connection connection;
    const Recipe &recipe;
    std::string owner;
};

class FunctionCalls : public Taker {
public:
    explicit FunctionCalls(std::string owner)
        : connection(connect()), owner(std::move(owner)),
          lease_try(oid_of("lease_try(text, text, interval)")),
          lease_release(oid_of("lease_release(text, text, interval, bigint)")) {}

    bool take(const std::string &name) override {
        PQArgBlock arguments[] = {text(name), text(owner), ttl()};
        return call(lease_try, arguments, 3) != 0;
    }

    // To keep it for nobody, by whatever token: the protocol has NULL as a length of -1.
    void release(const std::string &name) override {
        PQArgBlock arguments[] = {text(name), text(owner), null(), null()};
        if (call(lease_release, arguments, 4) == 0)
            throw std::runtime_error("postgres: the lock was not ours to release");
    }

private:
    static PQArgBlock text(const std::string &value) {
        PQArgBlock argument{static_cast<int>(value.size()), 0, {}};
        argument.u.ptr = reinterpret_cast<int *>(const_cast<char *>(value.data()));
        return argument;
    }

    static PQArgBlock null() { return {-1, 0, {}}; }

    // 30 s as the server sends and takes an interval: 8 bytes of microseconds, days, months.
    static PQArgBlock ttl() {
        static std::array<unsigned char, 16> bytes{0, 0, 0, 0, 0x01, 0xc9, 0xc3, 0x80};
        PQArgBlock argument{static_cast<int>(bytes.size()), 0, {}};
        argument.u.ptr = reinterpret_cast<int *>(bytes.data());
        return argument;
    }

    int oid_of(const char *function) {
        const char *parameters[] = {function};
        const std::unique_ptr<PGresult, FreeResult> result(
            PQexecParams(connection.get(), "SELECT $1::regprocedure::oid", 1, nullptr, parameters,
                         nullptr, nullptr, 0));
        if (PQresultStatus(result.get()) != PGRES_TUPLES_OK)
            throw std::runtime_error(PQerrorMessage(connection.get()));
        return std::stoi(PQgetvalue(result.get(), 0, 0));
    }

    // The boolean that the function returns.
    char call(int function, PQArgBlock *arguments, int count) {
        std::array<int, 4> answer{};
        int length = 0;
        const std::unique_ptr<PGresult, FreeResult> result(
            PQfn(connection.get(), function, answer.data(), &length, 0, arguments, count));
        if (PQresultStatus(result.get()) != PGRES_COMMAND_OK || length != 1)
            throw std::runtime_error(std::string("postgres: ") + PQerrorMessage(connection.get()));
        char value = 0;
        std::memcpy(&value, answer.data(), 1);
        return value;
    }

    Connection connection;
    std::string owner;
    int lease_try;
    int lease_release;
};

} // namespace

std::unique_ptr<Taker> postgres_taker(const std::string &contender, const std::string &owner) {
    return contender == "lease_function_call" ? std::make_unique<FunctionCalls>(owner) : nullptr;
}

std::unique_ptr<Waiter> postgres_waiter(const std::string &contender, const std::string &owner) {
    for (const Recipe &recipe : recipes)
        if (contender == recipe.name)
            return std::make_unique<Postgres>(recipe, owner);
    return nullptr;
}

} // namespace peers
