// The scenario of `expected`, with libpqxx: pqxx NAME
#include <pqxx/pqxx>

#include <functional>
#include <iostream>
#include <string>

namespace {

std::string name, job, me, other, warnings;

struct Warnings : pqxx::errorhandler {
    explicit Warnings(pqxx::connection_base& db) : pqxx::errorhandler(db) {}
    bool operator()(const char message[]) noexcept override
    {
        warnings += message;
        return true;
    }
};

template <typename T> void show(const char* what, const T& value) { std::cout << what << ": " << value << '\n'; }

// The first column of the first row. Each statement is a transaction of its own: a CALL that waits
// needs that.
template <typename... Args> pqxx::field one(pqxx::connection& db, const std::string& sql, const Args&... args)
{
    pqxx::nontransaction direct(db);
    return direct.exec_params(sql, args...).at(0).at(0);
}

// Writes in one transaction, behind the fence if there is a token.
std::size_t write(pqxx::connection& db, long token)
{
    pqxx::work transaction(db);
    if (token != 0) transaction.exec_params("SELECT lease_fence($1, $2)", job, token);
    auto rows = transaction.exec_params("INSERT INTO work_" + name + " (token) VALUES ($1)", token).affected_rows();
    transaction.commit();
    return rows;
}

std::string sqlstate(const std::function<void()>& action)
{
    try {
        action();
    } catch (const pqxx::sql_error& error) {
        return error.sqlstate();
    }
    return "no error";
}

void scenario(pqxx::connection& db)
{
    const auto token_of = [&](const std::string& owner) {
        return one(db, "SELECT lease_token($1, $2)", job, owner);
    };
    const auto bool_of = [](const pqxx::field& field) { return field.as<bool>(); };

    show("try", bool_of(one(db, "SELECT lease_try($1, $2, $3)", job, me, "30 s")));
    show("another's try", bool_of(one(db, "SELECT lease_try($1, $2, $3)", job, other, "30 s")));
    show("renew", bool_of(one(db, "SELECT lease_renew($1, $2, $3)", job, me, "30 s")));
    const auto token = token_of(me).as<long>();
    show("token", token > 0);
    show("token and answer in one round trip",
         one(db, "SELECT lease_token($1, $2) WHERE lease_try($1, $2, $3)", job, me, "30 s").as<long>() == token);
    show("renew that tenure", bool_of(one(db, "SELECT lease_renew($1, $2, $3, $4)", job, me, "30 s", token)));
    int renewed = 0;
    while (renewed < 10 && bool_of(one(db, "SELECT lease_renew($1, $2, $3)", job, me, "30 s"))) renewed++;
    show("renew ten times", renewed);
    show("another's token", token_of(other).is_null() ? "null" : "not null");
    show("write behind the fence", write(db, token));
    show("write without it", sqlstate([&] { write(db, 0); }));

    const auto slot = "slot-" + name + "-";
    const auto slots = "{" + slot + "1," + slot + "2}"; // an array is a text in braces
    show("a slot", one(db, "SELECT lease_try_any($1, $2, $3)", slots, me, "30 s").as<std::string>().find(slot) == 0);
    one(db, "SELECT lease_try(name, $1, $2) FROM unnest($3::text[]) AS name", me, "30 s", slots);
    show("renew all", one(db, "SELECT cardinality(lease_renew_all($1, $2, $3))", slots, me, "30 s").as<int>());

    show("release", bool_of(one(db, "SELECT lease_release($1, $2)", job, me)));
    {
        const Warnings handler(db);
        show("release again", bool_of(one(db, "SELECT lease_release($1, $2, token => $3)", job, me, token)));
    }
    show("with a warning", warnings.find("is not held") != std::string::npos);
    show("fence too late", sqlstate([&] { write(db, token); }));
    show("no ttl", sqlstate([&] { one(db, "SELECT lease_try($1, $2, $3)", job, me, nullptr); }));

    const auto later = one(db, "CALL lease_acquire($1, $2, $3)", job, me, "30 s").as<long>();
    show("acquire", later > token);
    show("acquire in vain",
         one(db, "CALL lease_acquire($1, $2, $3, $4)", job, other, "30 s", "50 ms").is_null() ? "null" : "not null");
    show("acquire in turn", one(db, "CALL lease_acquire($1, $2, $3, $4)", "turn-" + name, me, "30 s", "30 s").as<long>() > 0);
    show("watch in vain", one(db, "CALL lease_watch($1, $2, $3)", job, later, "50 ms").as<long>() == later);
    one(db, "SELECT lease_release($1, $2)", job, me);
    show("watch", one(db, "CALL lease_watch($1, $2, $3)", job, later, "30 s").is_null() ? "null" : "not null");
}

} // namespace

int main(int, char** argv)
{
    name = argv[1];
    job = "job-" + name;
    me = name + "-1";
    other = name + "-2";
    std::cout << std::boolalpha;
    try {
        pqxx::connection db; // server, user and database are in PGHOST, PGPORT...
        scenario(db);
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
