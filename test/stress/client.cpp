#include "client.hpp"

#include "server.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace stress {

namespace {

class Client {
public:
    Client(const Plan &plan, int number, int pipe)
        : plan_(plan), number_(number), pipe_(pipe), dice_(plan.seed, number),
          owner_("client-" + std::to_string(number)),
          ttl_(std::to_string(plan.ttl.count()) + " ms"), session_(owner_) {}

    [[noreturn]] void work() {
        for (;;) {
            if (take())
                use();
            think(1, 8);
        }
    }

private:
    void tell(Kind kind, std::int64_t id = 0, Usec at = 0, const std::string &text = "") {
        Event event = {};
        event.kind = kind;
        event.client = number_;
        event.token = token_;
        event.id = id;
        event.at = at;
        text.copy(event.text, sizeof(event.text) - 1);
        if (write(pipe_, &event, sizeof(event)) != sizeof(event))
            std::_Exit(0); // the parent has gone
    }

    void think(int low, int high) {
        std::this_thread::sleep_for(Milliseconds(dice_.between(low, high)));
    }

    // An error that no client should meet.
    void surprise(const Answer &answer) {
        tell(Kind::surprised, 0, 0, owner_ + ": " + answer.state + " " + answer.message);
    }

    bool take() {
        const Answer answer =
            session_.ask("SELECT lease_try($1, $2, $3::interval)", {lease_name, owner_, ttl_});
        if (!answer.ok()) {
            surprise(answer);
            return false;
        }
        if (answer.value() != "t")
            return false;
        // The row is ours until somebody takes over, and only then does the lease have another.
        const Answer row = session_.ask(
            "SELECT token, (extract(epoch FROM acquired_at) * 1000000)::bigint FROM leases "
            "WHERE name = $1 AND owner = $2",
            {lease_name, owner_});
        if (!row.ok())
            surprise(row);
        if (row.rows.empty()) // taken over already: there is nothing to work with
            return false;
        const Token token = std::stoll(row.value(0));
        const bool fresh = token != token_; // else it had forgotten one that still ran
        token_ = token;
        if (fresh)
            tell(Kind::granted, 0, std::stoll(row.value(1)));
        return true;
    }

    // A client that has lost the lease goes on all the same: it does not look.
    void use() {
        const int writes = dice_.between(1, 6);
        for (int i = 0; i < writes; i++) {
            tell(Kind::holding);
            think(0, 4);
            observe();
            if (!write_until_it_counts())
                return;
            if (dice_.one_in(3))
                session_.ask("SELECT lease_renew($1, $2, $3::interval, $4)",
                             {lease_name, owner_, ttl_, std::to_string(token_)});
        }
        if (!dice_.one_in(3)) // else it forgets, and the lease ends by itself
            session_.ask("SELECT lease_release($1, $2, token => $3)",
                         {lease_name, owner_, std::to_string(token_)});
    }

    void observe() {
        const Answer answer = session_.ask(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, lease_token($1, $2)",
            {lease_name, owner_});
        if (!answer.ok())
            surprise(answer);
        else if (const auto &token = answer.rows.at(0).at(1); token && std::stoll(*token) == token_)
            tell(Kind::observed, 0, std::stoll(answer.value(0)));
    }

    enum class Outcome { committed, refused, again, failed };

    bool write_until_it_counts() {
        const std::int64_t id = ++last_id_;
        for (;;) {
            switch (write_once(id)) {
            case Outcome::committed:
                tell(Kind::acknowledged, id);
                return true;
            case Outcome::refused:
                tell(Kind::refused);
                return false;
            case Outcome::failed:
                return false;
            case Outcome::again:
                tell(Kind::retried);
            }
        }
    }

    Outcome end_after(const Answer &answer) {
        session_.ask("ROLLBACK");
        if (answer.state == "LEASE")
            return Outcome::refused;
        if (answer.state == "40001" || answer.state == "40P01")
            return Outcome::again;
        surprise(answer);
        return Outcome::failed;
    }

    Outcome write_once(std::int64_t id) {
        static constexpr const char *levels[] = {"READ COMMITTED", "REPEATABLE READ",
                                                 "SERIALIZABLE"};
        const std::string token = std::to_string(token_);
        Answer answer =
            session_.ask(std::string("BEGIN ISOLATION LEVEL ") + levels[dice_.between(0, 2)]);
        if (!answer.ok())
            return end_after(answer);
        if (plan_.fenced) {
            answer = session_.ask("SELECT lease_fence($1, $2)", {lease_name, token});
            if (!answer.ok())
                return end_after(answer);
        }
        // What it read counts from now on, so a stop here makes it stale.
        answer = session_.ask("SELECT writes FROM stress_register");
        if (!answer.ok())
            return end_after(answer);
        const std::string before = answer.value();
        tell(Kind::inside);
        think(0, 4);
        answer = session_.ask(
            "WITH r AS (UPDATE stress_register SET writes = writes + 1 RETURNING writes) "
            "INSERT INTO stress_writes SELECT writes, $1, $2, $3, $4 FROM r",
            {token, std::to_string(number_), std::to_string(id), before});
        if (!answer.ok())
            return end_after(answer);
        answer = session_.ask("COMMIT");
        return answer.ok() ? Outcome::committed : end_after(answer);
    }

    const Plan &plan_;
    int number_;
    int pipe_;
    Dice dice_;
    std::string owner_;
    std::string ttl_;
    Session session_;
    Token token_ = 0;
    std::int64_t last_id_ = 0;
};

} // namespace

void make_tables(const Plan &plan) {
    Session session("stress");
    session.must("DROP TABLE IF EXISTS stress_register, stress_writes");
    session.must("DROP EXTENSION IF EXISTS lease");
    session.must("CREATE EXTENSION lease");
    session.must("CREATE TABLE stress_register (writes bigint NOT NULL)");
    session.must("INSERT INTO stress_register VALUES (0)");
    session.must("CREATE TABLE stress_writes (number bigint, token bigint, client int, "
                 "id bigint, before bigint)");
    if (!plan.fenced)
        return;
    for (const char *table : {"stress_register", "stress_writes"})
        session.must(std::string("CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON ") +
                     table + " FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('" + lease_name +
                     "')");
}

pid_t start_client(const Plan &plan, int number, int pipe) {
    const pid_t pid = fork();
    if (pid < 0)
        throw std::runtime_error("cannot fork");
    if (pid > 0)
        return pid;
    // The child leaves without a farewell: what its parent has on its mind is not its own.
    std::signal(SIGTERM, SIG_DFL);
    try {
        Client(plan, number, pipe).work();
    } catch (const std::exception &error) {
        Event event = {};
        event.kind = Kind::surprised;
        event.client = number;
        std::string(error.what()).copy(event.text, sizeof(event.text) - 1);
        if (write(pipe, &event, sizeof(event)) < 0)
            std::_Exit(2);
    }
    std::_Exit(1);
}

} // namespace stress
