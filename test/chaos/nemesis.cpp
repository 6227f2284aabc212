#include "nemesis.hpp"

#include "caller.hpp"
#include "text.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace chaos {

namespace {

Session own_session() {
    return Session("application_name=nemesis options='-c lock_timeout=2s'");
}

// The process of one session, by its application or type; 0: there is none.
int some_process(Haunt &haunt, Session &session, const std::string &which) {
    const Answer answer = session.must("SELECT pid FROM pg_stat_activity WHERE " + which);
    return answer.rows.empty() ? 0 : std::stoi(*haunt.dice.one_of(answer.rows)[0]);
}

constexpr const char *clients = "application_name = 'client'";

void cancel(Haunt &haunt) {
    haunt.pause(0, 300 * millisecond);
    Session session = own_session();
    if (const int pid = some_process(haunt, session, clients); pid != 0)
        haunt.run(session, text("SELECT pg_cancel_backend(", pid, ")"), "cancelled");
}

void terminate(Haunt &haunt) {
    haunt.pause(0, 800 * millisecond);
    Session session = own_session();
    const bool keeper = haunt.dice.one_in(4);
    const int pid =
        some_process(haunt, session, keeper ? "backend_type = 'lease keeper'" : clients);
    if (pid != 0)
        haunt.run(session, text("SELECT pg_terminate_backend(", pid, ")"),
                  keeper ? "keeper terminated" : "terminated");
}

// Tells of the crash that `work` makes before it, too: it may not come to tell of it after.
template <typename Work> void tell_of_crash(const Teller &teller, Work work) {
    Span when{now(), never};
    teller.tell(Message::crash(when));
    work();
    when.to = now();
    teller.tell(Message::crash(when));
}

// The server ends all sessions then, and recovers: once it has seen that the process is gone.
void kill_backend(Haunt &haunt) {
    haunt.pause(2 * second, 8 * second);
    Session session = own_session();
    const int pid = some_process(haunt, session, clients);
    if (pid == 0)
        return;
    tell_of_crash(haunt.teller, [pid] {
        while (kill(pid, SIGKILL) == 0)
            sleep_for(millisecond);
        connect_patiently("application_name=nemesis");
    });
    haunt.teller.fault("backend killed");
}

void crash(Haunt &haunt) {
    haunt.pause(2 * second, 8 * second);
    tell_of_crash(haunt.teller, crash_server);
    haunt.teller.fault("server stopped");
}

void shift_clock(Haunt &haunt) {
    haunt.pause(0, 600 * millisecond);
    Shift shift;
    const Usec most = haunt.plan.longest_ttl * 2;
    shift.offset = haunt.dice.one_in(3) ? 0 : haunt.between(-most, most);
    const Usec before = haunt.shared.clock_offset;
    shift.from = now();
    haunt.shared.clock_offset = shift.offset;
    shift.to = now();
    haunt.teller.tell(shift);
    haunt.teller.fault(shift.offset > before ? "clock set forward" : "clock set back");
}

void maintain(Haunt &haunt) {
    static const std::vector<std::string> statements = {
        "VACUUM dist_lock",
        "VACUUM (FREEZE, TRUNCATE) dist_lock",
        "VACUUM FULL dist_lock",
        "REINDEX TABLE dist_lock",
        "REINDEX TABLE CONCURRENTLY dist_lock",
        "CLUSTER dist_lock USING dist_lock_pkey",
        "ANALYZE dist_lock",
        "ALTER TABLE dist_lock SET (fillfactor = 90)",
        "ALTER TABLE dist_lock RESET (fillfactor)",
        "ALTER TABLE dist_lock ADD COLUMN IF NOT EXISTS more float8 DEFAULT random()",
        "ALTER TABLE dist_lock DROP COLUMN IF EXISTS more",
        "CREATE INDEX IF NOT EXISTS dist_lock_expiry ON dist_lock (expiry)",
        "DROP INDEX IF EXISTS dist_lock_expiry",
        "CHECKPOINT"};
    haunt.pause(0, 300 * millisecond);
    Session session = own_session();
    const std::string &statement = haunt.dice.one_of(statements);
    haunt.run(session, statement, statement.substr(0, statement.find(" dist_lock")));
}

// Every change of a row leads to another place then, and to new entries in all indexes. (An index
// of its own: two sessions that make the same one at once can meet an error.)
void move(Haunt &haunt) {
    haunt.pause(0, 500 * millisecond);
    Session session = own_session();
    haunt.run(session, "CREATE INDEX IF NOT EXISTS dist_lock_moves ON dist_lock (expiry)");
    haunt.run(session, "VACUUM dist_lock", "vacuumed while rows move");
}

// Their places go to the rows that come next.
void purge(Haunt &haunt) {
    haunt.pause(0, 200 * millisecond);
    Session session = own_session();
    haunt.run(session, "SELECT lease_purge('0')", "purged");
    if (haunt.dice.one_in(2))
        haunt.run(session, "VACUUM dist_lock");
}

void break_lease(Haunt &haunt) {
    haunt.pause(0, 500 * millisecond);
    Session session = own_session();
    static std::int64_t last_id = 0;
    Operation operation;
    operation.kind = Kind::broken;
    operation.lease = static_cast<int>(haunt.between(0, haunt.plan.leases - 1));
    operation.id = ++last_id;
    operation.asked = now();
    haunt.teller.tell(operation);
    const Answer answer = session.ask("SELECT lease_break($1)", {name_of_lease(operation.lease)});
    // Its connection is a direct one: if that is gone, so is its process.
    operation.answered = now();
    if (!answer.lost)
        operation.outcome = !answer.ok()            ? Outcome::failed
                            : answer.value() == "t" ? Outcome::yes
                                                    : Outcome::no;
    haunt.teller.tell(operation);
    haunt.teller.fault("broken");
}

void dump(Haunt &haunt) {
    haunt.pause(second, 4 * second);
    const std::string command = std::string(std::getenv("BINDIR")) + "/pg_dump >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0)
        haunt.teller.fault("dumped");
}

void hold_snapshot(Haunt &haunt) {
    Session session = own_session();
    session.must("BEGIN ISOLATION LEVEL REPEATABLE READ");
    haunt.run(session, "SELECT count(*) FROM dist_lock", "old snapshot");
    haunt.pause(100 * millisecond, 2 * second);
    haunt.run(session, "COMMIT");
    haunt.pause(0, second);
}

void lock_rows(Haunt &haunt) {
    static const std::vector<std::string> strengths = {"UPDATE", "NO KEY UPDATE", "SHARE",
                                                       "KEY SHARE"};
    haunt.pause(0, 400 * millisecond);
    Session session = own_session();
    session.must("BEGIN");
    haunt.run(session,
              text("SELECT FROM dist_lock WHERE name = '",
                   name_of_lease(static_cast<int>(haunt.between(0, haunt.plan.leases - 1))),
                   "' FOR ", haunt.dice.one_of(strengths)),
              "row locked by hand");
    haunt.pause(0, 300 * millisecond);
    haunt.run(session, haunt.dice.one_in(2) ? "COMMIT" : "ROLLBACK");
}

// A second time is old enough: their clients end them sooner.
void end_prepared(Haunt &haunt) {
    static std::set<std::string> seen;
    sleep_for(500 * millisecond);
    Session session = own_session();
    std::set<std::string> there;
    for (const auto &row : session.must("SELECT gid FROM pg_prepared_xacts").rows) {
        const std::string &gid = *row[0];
        there.insert(gid);
        if (seen.count(gid) != 0)
            haunt.run(session,
                      text(haunt.dice.one_in(2) ? "COMMIT" : "ROLLBACK", " PREPARED '", gid, "'"),
                      "prepared transaction ended by somebody else");
    }
    seen = there;
}

// It may find the server away, or the chaos over.
void attempt(Nemesis nemesis, Haunt &haunt) {
    try {
        nemesis(haunt);
    } catch (const std::runtime_error &) {
        sleep_for(100 * millisecond);
    }
}

} // namespace

void Haunt::pause(Usec low, Usec high) {
    for (const Usec until = now() + between(low, high) / plan.haste; now() < until;) {
        sleep_for(std::min(until - now(), 20 * millisecond));
        if (shared.phase != Phase::chaos)
            throw std::runtime_error("it is over");
    }
}

bool Haunt::run(Session &session, const std::string &sql, const std::string &fault) const {
    const Answer answer = session.ask(sql);
    if (answer.lost)
        throw std::runtime_error(answer.message);
    if (answer.ok() && !fault.empty())
        teller.fault(fault);
    if (!answer.ok() && !is_expected(answer.state))
        teller.tell(Message::Type::surprise, answer.state + " " + answer.message + " after " + sql);
    return answer.ok();
}

const std::map<std::string, Nemesis> &nemeses() {
    static const std::map<std::string, Nemesis> all = {{"cancel", cancel},
                                                       {"terminate", terminate},
                                                       {"kill", kill_backend},
                                                       {"crash", crash},
                                                       {"clock", shift_clock},
                                                       {"maintenance", maintain},
                                                       {"purge", purge},
                                                       {"move", move},
                                                       {"break", break_lease},
                                                       {"dump", dump},
                                                       {"snapshot", hold_snapshot},
                                                       {"row locks", lock_rows},
                                                       {"relay", relay}};
    return all;
}

void be_nemesis(Nemesis nemesis, Haunt &haunt) {
    for (;;) {
        if (haunt.shared.phase == Phase::chaos)
            attempt(nemesis, haunt);
        else
            sleep_for(20 * millisecond);
    }
}

void be_heir(Haunt &haunt) {
    for (;;)
        attempt(end_prepared, haunt);
}

} // namespace chaos
