#include "run.hpp"

#include "cast.hpp"
#include "client.hpp"
#include "server.hpp"
#include "tenures.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace chaos {

namespace {

class Recorder {
public:
    explicit Recorder(Run &run) : run_(run) {
        for (int lease = 0; lease < run.history.leases; lease++)
            last_grants_[lease] = 0;
    }

    void note(const Message &message) {
        History &history = run_.history;
        switch (message.type) {
        case Message::Type::operation:
            note_latest(history.operations, operations_, message.operation);
            note_grant(message.operation);
            break;
        case Message::Type::transaction:
            note_latest(history.transactions, transactions_, message.transaction);
            break;
        case Message::Type::shift:
            history.shifts.push_back(message.shift);
            break;
        case Message::Type::crash:
            note_crash({message.shift.from, message.shift.to});
            break;
        case Message::Type::fault:
            run_.faults[message.text]++;
            break;
        case Message::Type::surprise:
            history.surprises.emplace_back(message.text);
            break;
        case Message::Type::leftover:
            history.leftovers.emplace_back(message.text);
            break;
        case Message::Type::id:
            history.ids.emplace_back(message.text);
            break;
        }
    }

    // Whether every lease has been granted since.
    bool all_granted_since(Usec moment) const {
        return std::all_of(last_grants_.begin(), last_grants_.end(),
                           [moment](const auto &grant) { return grant.second >= moment; });
    }

private:
    using Places = std::map<std::pair<int, std::int64_t>, std::size_t>;

    template <typename Thing>
    static void note_latest(std::vector<Thing> &things, Places &places, const Thing &thing) {
        const auto [place, fresh] = places.try_emplace({thing.contender, thing.id}, things.size());
        if (fresh)
            things.push_back(thing);
        else
            things[place->second] = thing;
    }

    void note_crash(Span when) {
        for (Span &one : run_.history.crashes)
            if (one.from == when.from) {
                one.to = when.to;
                return;
            }
        run_.history.crashes.push_back(when);
    }

    void note_grant(const Operation &operation) {
        if (operation.outcome != Outcome::yes || !is_take(operation.kind))
            return;
        if (operation.transaction == 0)
            last_grants_[operation.lease] = operation.answered;
        if (last_grant_ != 0)
            run_.longest_pause = std::max(run_.longest_pause, operation.answered - last_grant_);
        last_grant_ = std::max(last_grant_, operation.answered);
    }

    Run &run_;
    Places operations_;
    Places transactions_;
    Usec last_grant_ = 0;
    std::map<int, Usec> last_grants_; // for sure, of each lease
};

Shared &begin_sharing() {
    Shared &shared = *Shared::map(shared_file());
    shared.phase = Phase::calm;
    shared.clock_offset = 0;
    shared.contenders = 0;
    return shared;
}

class Stage {
public:
    Stage(const Plan &plan, Run &run, Shared &shared)
        : run_(run), shared_(shared), recorder_(run), cast_(plan, shared) {}

    // Nothing goes wrong yet.
    void begin(Usec length) {
        const Usec from = now();
        steps(from + length, false);
        run_.history.calm = {from, now()};
    }

    void hurt(Usec length) {
        shared_.phase = Phase::chaos;
        cast_.start_nemeses();
        steps(now() + length, true);
        // A nemesis may be in the middle of something that it has to tell, or to mend.
        shared_.phase = Phase::healing;
        steps(now() + 3 * second, false);
        Shift back{now(), never, 0};
        shared_.clock_offset = 0;
        back.to = now();
        run_.history.shifts.push_back(back);
    }

    // Nothing goes wrong any more.
    void heal(Usec length) {
        const Usec from = now();
        while (now() < from + length && !recorder_.all_granted_since(from))
            step(false);
        run_.history.healing = {from, now()};
    }

    void end() {
        cast_.end_clients();
        Message message;
        while (cast_.next(message))
            recorder_.note(message);
    }

private:
    void step(bool hurting) {
        Message message;
        if (cast_.next(message)) {
            recorder_.note(message);
            if (hurting)
                for (const Message &more : cast_.hurt(message))
                    recorder_.note(more);
        }
        cast_.let_go_on();
    }

    void steps(Usec until, bool hurting) {
        while (now() < until)
            step(hurting);
    }

    Run &run_;
    Shared &shared_;
    Recorder recorder_;
    Cast cast_;
};

// Our own sessions' may end a little later.
void wait_for_sessions(Session &session) {
    for (int i = 0; i < 200; i++) {
        const Answer answer = session.must(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'client') + "
            "(SELECT count(*) FROM pg_prepared_xacts)");
        if (answer.value() == "0")
            return;
        sleep_for(50 * millisecond);
    }
}

void roll_back_prepared(Session &session) {
    for (const auto &row : session.must("SELECT gid FROM pg_prepared_xacts").rows)
        session.must(text("ROLLBACK PREPARED '", *row[0], "'"));
}

// What the server's log says of takeovers, and what no server should say.
void read_log(std::streamoff from, Run &run) {
    static const std::vector<std::string> bad = {"PANIC:", "TRAP:",        "you don't own a lock",
                                                 " leak",  "by signal 6:", "by signal 11:"};
    std::ifstream log(std::getenv("LEASE_LOG"));
    log.seekg(from);
    for (std::string line; std::getline(log, line);) {
        run.takeovers += line.find(" is taken over,") != std::string::npos ? 1 : 0;
        for (const std::string &sign : bad)
            if (line.find(sign) != std::string::npos)
                run.history.surprises.push_back(line);
    }
}

std::streamoff length_of_log() {
    std::ifstream log(std::getenv("LEASE_LOG"), std::ios::ate);
    return log.tellg();
}

} // namespace

Run run(const Plan &plan) {
    const std::streamoff log = length_of_log();
    Shared &shared = begin_sharing();
    crash_server(); // so that its clock can be set
    make_tables(plan);
    Run run;
    run.history.leases = plan.leases;
    const Usec began = now();
    {
        Stage stage(plan, run, shared);
        stage.begin(plan.calm);
        if (plan.chaos > 0)
            stage.hurt(plan.chaos);
        if (plan.healing > 0)
            stage.heal(plan.healing);
        stage.end();
    }
    Session session("application_name=chaos");
    roll_back_prepared(session);
    wait_for_sessions(session);
    run.history.writes = read_writes(plan);
    run.length = now() - began;
    read_log(log, run);
    return run;
}

} // namespace chaos
