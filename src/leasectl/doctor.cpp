// leasectl doctor: what is set or used in a way that hurts leases.
#include "inspect.hpp"

#include "client.hpp"
#include "exit_status.hpp"
#include "log.hpp"
#include "output.hpp"

#include <cstdlib>

namespace leasectl {

namespace {

const std::vector<Column> columns = {
    {"check", Kind::text}, {"result", Kind::text}, {"message", Kind::text}};

class Examination {
public:
    explicit Examination(Client &client) : client_(client) {}

    void examine();
    const std::vector<Row> &findings() const { return findings_; }
    bool is_well() const { return well_; }

private:
    bool extension(); // false: the checks that use it cannot be made
    void durability();
    void replication();
    void margins();
    void fences();
    void expired();

    void fine(const char *check, const std::string &message) {
        findings_.push_back({check, "ok", message});
    }
    void warn(const char *check, const std::string &message) {
        findings_.push_back({check, "warning", message});
        well_ = false;
    }
    // A warning for each row, which has name, message, and the count of all rows.
    void warn_each(const char *check, const std::vector<Row> &rows, const char *none);
    bool is_true(const char *sql) { return client_.query(sql)[0][0] == "t"; }

    Client &client_;
    std::vector<Row> findings_;
    bool well_ = true;
};

void Examination::examine() {
    durability();
    replication();
    if (!extension())
        return;
    margins();
    fences();
    expired();
}

bool Examination::extension() {
    const std::vector<Row> rows = client_.query(
        "SELECT e.extversion, a.default_version, pg_catalog.current_database()"
        " FROM (SELECT 1) AS one"
        " LEFT JOIN pg_catalog.pg_extension AS e ON e.extname OPERATOR(pg_catalog.=) 'lease'"
        " LEFT JOIN pg_catalog.pg_available_extensions AS a"
        " ON a.name OPERATOR(pg_catalog.=) 'lease'");
    const Value &here = rows[0][0];
    const Value &files = rows[0][1];
    const std::string database = quoted(*rows[0][2]);
    if (!here) {
        warn("extension", "not in database " + database + ": CREATE EXTENSION lease");
        return false;
    }
    // Any call loads the library, and needs rights in the schema.
    const Answer call = client_.ask("SELECT @.lease_token('x', 'x')", {}, never);
    if (!call.fine) {
        warn("extension", "version " + *here + " in database " + database +
                              ", but it cannot be used: " + call.error);
        return false;
    }
    if (files && here != files)
        warn("extension", "version " + *here + " in database " + database + ", but version " +
                              *files + " is installed: ALTER EXTENSION lease UPDATE");
    else
        fine("extension", "version " + *here);
    return true;
}

void Examination::durability() {
    const char *check = "durability";
    bool good = true;
    for (const char *name : {"fsync", "full_page_writes"}) {
        if (client_.query("SELECT pg_catalog.current_setting($1)", {name})[0][0] == "on")
            continue;
        warn(check, std::string(name) + " is off: a crash of the system may forget who holds what");
        good = false;
    }
    if (good)
        fine(check, "grants and renewals survive a crash");
}

void Examination::replication() {
    const char *check = "replication";
    if (is_true("SELECT pg_catalog.pg_is_in_recovery()")) {
        warn(check, "this server is a standby: only tokens and views can be read here");
        return;
    }
    const Row row = client_.query(
        "SELECT pg_catalog.count(*) FILTER (WHERE state IS NULL"
        "  OR state OPERATOR(pg_catalog.<>) 'backup'),"
        " pg_catalog.count(*) FILTER (WHERE sync_state OPERATOR(pg_catalog.=) 'sync'"
        "  OR sync_state OPERATOR(pg_catalog.=) 'quorum'),"
        " pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.<>) '',"
        " pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
        " FROM pg_catalog.pg_stat_replication")[0];
    const bool names = row[2] == "t";
    if (row[0] == "0" && !names)
        fine(check, "no standby");
    else if (!names)
        warn(check, *row[0] +
                        " standby(s), none of them synchronous: a failover may forget grants, "
                        "and then two hold one lease (synchronous_standby_names)");
    else if (row[1] != "0")
        fine(check, "a synchronous standby confirms grants and renewals");
    else if (row[3] == "t")
        warn(check, "synchronous_standby_names is set, but no such standby is connected: "
                    "grants and renewals wait for one");
    else
        fine(check, "synchronous_standby_names is set (the state of standbys is shown to "
                    "pg_read_all_stats only)");
}

void Examination::warn_each(const char *check, const std::vector<Row> &rows, const char *none) {
    if (rows.empty()) {
        fine(check, none);
        return;
    }
    for (const Row &row : rows)
        warn(check,
             (row[0] ? quoted(*row[0]) : std::string("a lease")) + ": " + printable(*row[1]));
    const long more =
        std::strtol(rows[0][2]->c_str(), nullptr, 10) - static_cast<long>(rows.size());
    if (more > 0)
        warn(check, "and " + std::to_string(more) + " more");
}

// The TTL of a tenure that was released is in the table only, which not everybody may read.
void Examination::margins() {
    const bool table = is_true("SELECT pg_catalog.has_table_privilege(c.oid, 'SELECT')"
                               " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_extension AS e"
                               " ON c.relnamespace OPERATOR(pg_catalog.=) e.extnamespace"
                               " WHERE e.extname OPERATOR(pg_catalog.=) 'lease'"
                               " AND c.relname OPERATOR(pg_catalog.=) 'dist_lock'");
    const std::string source =
        table ? "(SELECT name, ttl, min_margin FROM @.dist_lock)"
              : "(SELECT name, expiry OPERATOR(pg_catalog.-) renewed_at AS ttl, min_margin"
                " FROM @.leases WHERE state OPERATOR(pg_catalog.=) 'held'"
                " OR state OPERATOR(pg_catalog.=) 'expired')";
    const std::vector<Row> rows = client_.query(
        "SELECT name, pg_catalog.format('only %s of a TTL of %s were left at a renewal:"
        " renew earlier, or take a longer TTL', min_margin, ttl), pg_catalog.count(*) OVER ()"
        " FROM " +
        source +
        " AS l WHERE min_margin OPERATOR(pg_catalog.<)"
        " (ttl OPERATOR(pg_catalog./) 3.0::pg_catalog.float8)"
        " ORDER BY name LIMIT 20");
    warn_each("margins", rows, "a third of the TTL or more was left at every renewal");
}

void Examination::fences() {
    warn_each("fences",
              client_.query(
                  "SELECT name, pg_catalog.format('%s, in a transaction (process %s) that is open"
                  " since %s; nobody can take the lease over, release or break it', CASE kind"
                  " WHEN 'fence' THEN 'behind the fence' ELSE 'busy' END, pid, since),"
                  " pg_catalog.count(*) OVER () FROM @.lease_waiters"
                  " WHERE (kind OPERATOR(pg_catalog.=) 'fence'"
                  "  OR kind OPERATOR(pg_catalog.=) 'busy')"
                  " AND since OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp()"
                  "  OPERATOR(pg_catalog.-) '1 minute'::pg_catalog.interval)"
                  " ORDER BY since, pid LIMIT 20"),
              "no transaction has kept a lease to itself for a minute");
}

void Examination::expired() {
    warn_each("expired",
              client_.query(
                  "SELECT name, pg_catalog.format('expired at %s, and nobody has taken it since:"
                  " its holder died or could not renew', expiry), pg_catalog.count(*) OVER ()"
                  " FROM @.leases WHERE state OPERATOR(pg_catalog.=) 'expired'"
                  " AND expiry OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp()"
                  "  OPERATOR(pg_catalog.-) '1 minute'::pg_catalog.interval)"
                  " ORDER BY name LIMIT 20"),
              "no lease expired more than a minute ago without a new holder");
}

std::string format_findings(const std::vector<Row> &findings) {
    std::string text;
    for (const Row &row : findings) {
        std::string line = *row[1] + std::string(9 - row[1]->size(), ' ') + *row[0];
        line += std::string(13 - row[0]->size(), ' ') + *row[2];
        text += line + "\n";
    }
    return text;
}

} // namespace

int doctor(int argc, char **argv) {
    ConnectionOptions connection;
    bool json = false;
    std::vector<Option> options = connection_options(connection);
    options.push_back(flag_option("json", 0, json));
    parse_operands(argc, argv, options, 0);
    Client client(connection, false);
    client.connect();
    Examination examination(client);
    examination.examine();
    print(json ? format_json(columns, examination.findings())
               : format_findings(examination.findings()));
    return examination.is_well() ? exit_ok : exit_no;
}

} // namespace leasectl
