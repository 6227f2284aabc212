#include "caller.hpp"

#include "text.hpp"

#include <cstdlib>

namespace chaos {

namespace {

std::string names_of(const std::vector<int> &leases) {
    std::string names;
    for (const int lease : leases)
        names += (names.empty() ? "{" : ",") + name_of_lease(lease);
    return names + "}";
}

// For libpq's `options`, which are split at spaces, inside a quoted value.
std::string escaped(const std::string &option) {
    std::string escaped;
    for (const char c : option)
        escaped += c == ' ' ? "\\\\ " : std::string(1, c);
    return escaped;
}

} // namespace

std::string name_of_lease(int lease) {
    return text("lease-", lease);
}

std::string owner_of(int contender) {
    return text("contender-", contender);
}

std::string interval(Usec length) {
    return text(length, " us");
}

bool is_expected(const std::string &state) {
    static const std::set<std::string> states = {
        "40001", "40P01", "55P03", "57014", // try again
        "57P01", "57P02", "57P03", "25P03", // the server ended the session
        "53400",                            // no keeper can be started
        "42704", "55000",                   // the prepared transaction was ended by somebody else
        "LEASE"};
    return states.count(state) != 0 || state.substr(0, 2) == "08";
}

Caller::Caller(const Plan &plan, const Teller &teller, Shared &shared, Dice &dice)
    : plan_(plan), teller_(teller), shared_(shared), dice_(dice) {
    become_another();
    connect();
}

void Caller::become_another() {
    contender_ = ++shared_.contenders;
    tokens_.assign(plan_.leases, 0);
}

const std::string &Caller::some_level() const {
    static const std::vector<std::string> levels = {"READ COMMITTED", "REPEATABLE READ",
                                                    "SERIALIZABLE"};
    return dice_.one_of(levels);
}

void Caller::connect() {
    if (lost_ && dice_.one_in(2))
        become_another();
    session_.reset();
    over_relay_ =
        shared_.phase == Phase::chaos && plan_.nemeses.count("relay") != 0 && dice_.one_in(2);
    session_ = std::make_unique<Session>(connect_patiently(
        text("application_name=client options='-c lock_timeout=2s -c statement_timeout=5s "
             "-c idle_in_transaction_session_timeout=3s -c deadlock_timeout=100ms "
             "-c default_transaction_isolation=",
             escaped(some_level()), " -c synchronous_commit=", dice_.one_in(2) ? "on" : "off", "'",
             over_relay_ ? text(" host=", std::getenv("PGHOST"), "/relay") : "")));
    lost_ = false;
    transaction_ = {};
    has_savepoint_ = false;
}

void Caller::surprise(const Answer &answer, const std::string &sql) const {
    const bool hangs = answer.message == Session::no_answer && !over_relay_;
    if (hangs || !is_expected(answer.state))
        teller_.tell(Message::Type::surprise,
                     text(answer.state, " ", answer.message, " after ", sql));
}

Answer Caller::ask(const std::string &sql, const Parameters &parameters) {
    Answer answer = session_->ask(sql, parameters);
    if (!answer.ok())
        surprise(answer, sql);
    lost_ = lost_ || answer.lost;
    return answer;
}

bool Caller::plain(const std::string &sql, const Parameters &parameters) {
    return ask(sql, parameters).ok();
}

Operation Caller::start(Kind kind, int lease, Usec length, Token token) {
    Operation operation;
    operation.kind = kind;
    operation.contender = contender_;
    operation.lease = lease;
    operation.id = ++last_id_;
    operation.transaction = transaction_.id;
    operation.length = length;
    operation.token = token;
    operation.asked = now();
    teller_.tell(operation);
    return operation;
}

Outcome Caller::finish(Operation &operation, Outcome outcome) {
    operation.outcome = outcome;
    operation.answered = now();
    teller_.tell(operation);
    if (has_savepoint_)
        since_savepoint_.push_back(operation);
    return outcome;
}

Outcome Caller::finish(Operation &operation, const Answer &answer, Outcome null) {
    if (answer.lost)
        return Outcome::unknown;
    if (!answer.ok())
        return finish(operation, answer.state == "LEASE" && operation.kind == Kind::fenced
                                     ? Outcome::no
                                     : Outcome::failed);
    if (answer.rows.empty())
        return finish(operation, Outcome::no);
    const auto &value = answer.rows[0].at(0);
    if (!value)
        return finish(operation, null);
    if (!value->empty())
        operation.token = std::stoll(*value);
    if (operation.kind != Kind::watched && operation.token != 0)
        tokens_[operation.lease] = operation.token;
    return finish(operation, Outcome::yes);
}

Outcome Caller::call(Operation operation, const std::string &sql, const Parameters &parameters,
                     Outcome null) {
    return finish(operation, ask(sql, parameters), null);
}

// NULL: it had run out again before the token was asked for.
Outcome Caller::try_lease(int lease, Usec ttl) {
    return call(start(Kind::tried, lease, ttl),
                "SELECT lease_token($1, $2) WHERE lease_try($1, $2, $3::interval)",
                {name_of_lease(lease), owner_of(contender_), interval(ttl)}, Outcome::unknown);
}

Outcome Caller::try_any(const std::vector<int> &leases, Usec ttl) {
    std::vector<Operation> operations;
    for (const int lease : leases)
        operations.push_back(start(Kind::tried, lease, ttl));
    const Answer answer =
        ask("WITH one AS MATERIALIZED (SELECT lease_try_any($1::text[], $2, $3::interval) AS name) "
            "SELECT name, lease_token(name, $2) FROM one WHERE name IS NOT NULL",
            {names_of(leases), owner_of(contender_), interval(ttl)});
    return finish_many(operations, answer, Outcome::failed);
}

Outcome Caller::renew_all(const std::vector<int> &leases, Usec ttl) {
    std::vector<Operation> operations;
    for (const int lease : leases)
        operations.push_back(start(Kind::renewed, lease, ttl));
    const Answer answer = ask("SELECT name, lease_token(name, $2) "
                              "FROM unnest(lease_renew_all($1::text[], $2, $3::interval)) AS name",
                              {names_of(leases), owner_of(contender_), interval(ttl)});
    return finish_many(operations, answer, Outcome::no);
}

Outcome Caller::finish_many(std::vector<Operation> &operations, const Answer &answer,
                            Outcome unnamed) {
    if (answer.lost)
        return Outcome::unknown;
    for (Operation &operation : operations) {
        Answer one = answer;
        one.rows.clear();
        for (const auto &row : answer.rows)
            if (row[0] == name_of_lease(operation.lease))
                one.rows.push_back({row[1]});
        if (answer.ok() && one.rows.empty())
            finish(operation, unnamed);
        else
            finish(operation, one, Outcome::unknown);
    }
    return answer.ok() ? Outcome::yes : Outcome::failed;
}

Outcome Caller::acquire(int lease, Usec ttl, Usec wait) {
    return call(start(Kind::acquired, lease, ttl),
                "CALL lease_acquire($1, $2, $3::interval, $4::interval, NULL)",
                {name_of_lease(lease), owner_of(contender_), interval(ttl), interval(wait)});
}

Outcome Caller::renew(int lease, Usec ttl, bool by_token) {
    const std::string name = name_of_lease(lease);
    const std::string owner = owner_of(contender_);
    if (by_token && token(lease) != 0)
        return call(start(Kind::renewed, lease, ttl, token(lease)),
                    "SELECT $4::bigint WHERE lease_renew($1, $2, $3::interval, $4::bigint)",
                    {name, owner, interval(ttl), text(token(lease))});
    return call(start(Kind::renewed, lease, ttl),
                "SELECT lease_token($1, $2) WHERE lease_renew($1, $2, $3::interval)",
                {name, owner, interval(ttl)}, Outcome::unknown);
}

Outcome Caller::release(int lease, bool by_token) {
    const std::string name = name_of_lease(lease);
    const std::string owner = owner_of(contender_);
    if (by_token && token(lease) != 0)
        return call(start(Kind::released, lease, -1, token(lease)),
                    "SELECT '' WHERE lease_release($1, $2, token => $3::bigint)",
                    {name, owner, text(token(lease))});
    return call(start(Kind::released, lease), "SELECT '' WHERE lease_release($1, $2)",
                {name, owner});
}

Outcome Caller::release_and_keep(int lease, Usec keep) {
    return call(start(Kind::released, lease, keep, token(lease)),
                "SELECT '' WHERE lease_release($1, $2, $3::interval, $4::bigint)",
                {name_of_lease(lease), owner_of(contender_), interval(keep), text(token(lease))});
}

Outcome Caller::look(int lease) {
    return call(start(Kind::looked, lease), "SELECT lease_token($1, $2)",
                {name_of_lease(lease), owner_of(contender_)});
}

Outcome Caller::watch(int lease, Usec wait) {
    return call(start(Kind::watched, lease), "CALL lease_watch($1, $2::bigint, $3::interval, NULL)",
                {name_of_lease(lease), text(token(lease)), interval(wait)});
}

Outcome Caller::attach(int lease) {
    return call(start(Kind::attached, lease),
                "SELECT lease_token($1, $2) WHERE lease_attach($1, $2)",
                {name_of_lease(lease), owner_of(contender_)}, Outcome::unknown);
}

// To the checker, once attached is attached for good.
bool Caller::detach(int lease) {
    return plain("SELECT lease_detach($1, $2)", {name_of_lease(lease), owner_of(contender_)});
}

Outcome Caller::fence(int lease) {
    return call(start(Kind::fenced, lease, -1, token(lease)), "SELECT lease_fence($1, $2::bigint)",
                {name_of_lease(lease), text(token(lease))});
}

std::int64_t Caller::read_register(int lease) {
    const Answer answer = ask(text("SELECT writes FROM register_", lease), {});
    return answer.ok() ? std::stoll(answer.value()) : -1;
}

Outcome Caller::write(int lease, std::int64_t before) {
    Operation operation = start(Kind::wrote, lease, -1, token(lease));
    return call(operation,
                text("WITH r AS (UPDATE register_", lease,
                     " SET writes = writes + 1 RETURNING writes) "
                     "INSERT INTO writes_",
                     lease, " SELECT writes, $1, $2, $3, $4 FROM r RETURNING ''"),
                {text(token(lease)), text(contender_), text(operation.id), text(before)});
}

} // namespace chaos
