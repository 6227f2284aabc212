#include "run.hpp"

#include "cast.hpp"
#include "client.hpp"
#include "server.hpp"
#include "text.hpp"

#include <cstdlib>
#include <fstream>

namespace stress {

namespace {

class Recorder {
public:
    explicit Recorder(Run &run) : run_(run) {}

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
            history.crashes.push_back(message.shift.from);
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
        }
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

    void note_grant(const Operation &operation) {
        if (operation.outcome != Outcome::yes ||
            (operation.kind != Kind::tried && operation.kind != Kind::acquired))
            return;
        if (last_grant_ != 0)
            run_.longest_pause = std::max(run_.longest_pause, operation.answered - last_grant_);
        last_grant_ = std::max(last_grant_, operation.answered);
    }

    Run &run_;
    Places operations_;
    Places transactions_;
    Usec last_grant_ = 0;
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

    void play(Phase phase, Usec length) {
        shared_.phase = phase;
        if (phase == Phase::chaos)
            cast_.start_nemeses();
        for (const Usec until = now() + length; now() < until;)
            step(phase == Phase::chaos);
        if (phase == Phase::chaos)
            end_chaos();
    }
    Span play_in_peace(Phase phase, Usec length) {
        const Usec from = now();
        play(phase, length);
        return {from, now()};
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

    // A nemesis may be in the middle of something that it has to tell, or to mend.
    void end_chaos() {
        shared_.phase = Phase::healing;
        for (const Usec until = now() + 3 * second; now() < until;)
            step(false);
        const Shift shift{now(), now(), 0};
        shared_.clock_offset = 0;
        run_.history.shifts.push_back(shift);
        run_.history.shifts.back().to = now();
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
        run.history.calm = stage.play_in_peace(Phase::calm, plan.calm);
        stage.play(Phase::chaos, plan.chaos);
        if (plan.healing > 0)
            run.history.healing = stage.play_in_peace(Phase::healing, plan.healing);
        stage.end();
    }
    Session session("application_name=stress");
    roll_back_prepared(session);
    wait_for_sessions(session);
    run.history.writes = read_writes(plan);
    run.length = now() - began;
    read_log(log, run);
    return run;
}

} // namespace stress
