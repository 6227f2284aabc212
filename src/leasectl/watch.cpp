// leasectl watch: a line, or a command, for each change of a lease's holder.
#include "inspect.hpp"

#include "client.hpp"
#include "environment.hpp"
#include "exit_status.hpp"
#include "log.hpp"
#include "output.hpp"

#include <cerrno>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

namespace leasectl {

namespace {

constexpr Usec stretch = 30 * second; // of one wait in the server
constexpr Usec slack = 10 * second;   // after it a connection without an answer is dead
constexpr Usec reconnect_pause = second;
// A statement_timeout that is shorter than the stretch ends it, too.
constexpr const char *query_canceled = "57014";

const std::vector<Column> columns = {{"time", Kind::text},
                                     {"name", Kind::text},
                                     {"state", Kind::text},
                                     {"token", Kind::number},
                                     {"owner", Kind::text}};

struct WatchOptions {
    ConnectionOptions connection;
    std::string name;
    bool json = false;
    std::optional<std::string> command;
};

// A row of `columns`. The owner is shown only if he is the one with that token.
Row describe(Client &client, const std::string &name, const Value &token) {
    const std::vector<Row> rows = client.query(
        "SELECT pg_catalog.to_json(c.now) OPERATOR(pg_catalog.#>>) '{}',"
        " CASE WHEN $2::pg_catalog.int8 IS NOT NULL THEN 'held'"
        "      WHEN l.state OPERATOR(pg_catalog.=) 'held' OR l.state IS NULL THEN 'free'"
        "      ELSE l.state END,"
        " CASE WHEN l.token OPERATOR(pg_catalog.=) $2::pg_catalog.int8 THEN l.owner END"
        " FROM (SELECT pg_catalog.clock_timestamp() AS now) AS c"
        " LEFT JOIN @.leases AS l ON l.name OPERATOR(pg_catalog.=) $1",
        {name, token});
    return {rows[0][0], name, rows[0][1], token, rows[0][2]};
}

void execute(const std::string &command, const Row &change) {
    const std::vector<std::string> added = {
        "LEASE_NAME=" + change[1].value_or(""), "LEASE_STATE=" + change[2].value_or(""),
        "LEASE_TOKEN=" + change[3].value_or(""), "LEASE_OWNER=" + change[4].value_or("")};
    const std::vector<char *> environment = environment_with(added);
    const pid_t child = fork();
    if (child == 0) { // beside threads: system calls only
        execle("/bin/sh", "sh", "-c", command.c_str(), static_cast<char *>(nullptr),
               environment.data());
        _exit(exit_not_found);
    }
    if (child < 0)
        throw std::system_error(errno, std::generic_category(), "could not start a process");
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0)
        say("the command of --exec failed" +
            (WIFEXITED(status) ? " with status " + std::to_string(WEXITSTATUS(status))
                               : " by signal " + std::to_string(WTERMSIG(status))));
}

void tell(const WatchOptions &options, const Row &change) {
    if (options.json) {
        print(json_object(columns, change) + "\n");
    } else {
        std::string line = *change[0] + " " + printable(*change[1]) + " " + *change[2];
        if (change[3])
            line += " token " + *change[3];
        if (change[4])
            line += " owner " + printable(*change[4]);
        print(line + "\n");
    }
    if (options.command)
        execute(*options.command, change);
}

Value wait_for_change(Client &client, const std::string &name, const Value &known, Usec wait) {
    const Answer answer = client.ask("CALL @.lease_watch($1, $2, $3::pg_catalog.interval, NULL)",
                                     {name, known, std::to_string(wait) + " microseconds"},
                                     boot_now() + wait + slack);
    if (answer.sqlstate == query_canceled && wait > 0)
        return known;
    if (!answer.fine)
        throw Failure(answer.is_callers_fault() ? exit_usage : exit_unavailable, answer.error);
    return answer.rows[0][0];
}

[[noreturn]] void watch(Client &client, const WatchOptions &options) {
    Poller poller;
    Value known;
    for (bool first = true;;) {
        try {
            const Value token = wait_for_change(client, options.name, known, first ? 0 : stretch);
            if (first || token != known)
                tell(options, describe(client, options.name, token));
            known = token;
            first = false;
        } catch (const Failure &failure) {
            if (first || client.is_connected())
                throw; // the request, not the connection
            say("tries again: " + std::string(failure.what()));
            poller.wait({}, boot_now() + reconnect_pause);
        }
    }
}

} // namespace

int watch_lease(int argc, char **argv) {
    WatchOptions options;
    std::vector<Option> known = connection_options(options.connection);
    known.push_back(flag_option("json", 0, options.json));
    known.push_back(text_option("exec", 0, options.command));
    options.name = parse_operands(argc, argv, known, 1).front();
    Client client(options.connection);
    client.connect();
    watch(client, options);
}

} // namespace leasectl
