// leasectl ls and leasectl waiters: the two views, once or again and again.
#include "inspect.hpp"

#include "client.hpp"
#include "exit_status.hpp"
#include "log.hpp"
#include "output.hpp"

#include <unistd.h>

namespace leasectl {

namespace {

struct View {
    const char *sql;
    std::vector<Column> columns;
};

// Times as ISO 8601, as JSON has them; intervals in seconds.
const View leases = {
    "SELECT name, state, owner, token, role,"
    " pg_catalog.to_json(acquired_at) OPERATOR(pg_catalog.#>>) '{}',"
    " pg_catalog.to_json(renewed_at) OPERATOR(pg_catalog.#>>) '{}',"
    " pg_catalog.to_json(expiry) OPERATOR(pg_catalog.#>>) '{}',"
    " EXTRACT(epoch FROM remaining)::pg_catalog.float8, session_pid, waiters, grants, takeovers,"
    " EXTRACT(epoch FROM min_margin)::pg_catalog.float8, last_owner, last_end"
    " FROM @.leases ORDER BY name",
    {{"name", Kind::text},
     {"state", Kind::text},
     {"owner", Kind::text},
     {"token", Kind::number},
     {"role", Kind::text},
     {"acquired_at", Kind::text, false},
     {"renewed_at", Kind::text, false},
     {"expiry", Kind::text, false},
     {"remaining", Kind::seconds},
     {"session_pid", Kind::number, false},
     {"waiters", Kind::number},
     {"grants", Kind::number},
     {"takeovers", Kind::number},
     {"min_margin", Kind::seconds},
     {"last_owner", Kind::text, false},
     {"last_end", Kind::text, false}}};

const View waiters = {
    "SELECT name, kind, position, pid,"
    " pg_catalog.to_json(since) OPERATOR(pg_catalog.#>>) '{}',"
    " EXTRACT(epoch FROM pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) since)"
    "::pg_catalog.float8"
    " FROM @.lease_waiters ORDER BY name, kind, position, since, pid",
    {{"name", Kind::text},
     {"kind", Kind::text},
     {"position", Kind::number},
     {"pid", Kind::number},
     {"since", Kind::text, false},
     {"seconds", Kind::seconds}}};

// The screen is kept, and written over, where there is one.
void show(const View &view, const std::vector<Row> &rows, bool json, bool again) {
    if (json) {
        print(format_json(view.columns, rows));
        return;
    }
    const bool screen = again && isatty(STDOUT_FILENO) == 1;
    print((screen ? "\033[H\033[J" : "") + format_table(view.columns, rows) +
          (again && !screen ? "\n" : ""));
}

void show_forever(Client &client, const View &view, bool json, Usec period) {
    Poller poller;
    for (;;) {
        try {
            show(view, client.query(view.sql), json, true);
        } catch (const Failure &failure) {
            if (client.is_connected())
                throw; // not the connection: the query
            say("tries again: " + std::string(failure.what()));
        }
        poller.wait({}, boot_now() + period);
    }
}

int list(int argc, char **argv, const View &view) {
    ConnectionOptions connection;
    bool json = false;
    std::optional<Usec> period;
    std::vector<Option> options = connection_options(connection);
    options.push_back(flag_option("json", 0, json));
    options.push_back(duration_option("watch", period));
    parse_operands(argc, argv, options, 0);
    Client client(connection);
    client.connect();
    if (period)
        show_forever(client, view, json, std::max(*period, 100 * millisecond));
    show(view, client.query(view.sql), json, false);
    return exit_ok;
}

} // namespace

int list_leases(int argc, char **argv) {
    return list(argc, argv, leases);
}

int list_waiters(int argc, char **argv) {
    return list(argc, argv, waiters);
}

} // namespace leasectl
