#include "run.hpp"

#include "client.hpp"
#include "nemesis.hpp"
#include "server.hpp"

#include <algorithm>
#include <csignal>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace stress {

namespace {

using Clock = std::chrono::steady_clock;

// All clients of a run; they end with it.
class Clients {
public:
    explicit Clients(const Plan &plan) {
        int ends[2];
        if (pipe(ends) != 0)
            throw std::runtime_error("no pipe");
        told_ = ends[0];
        for (int number = 1; number <= plan.clients; number++)
            pids_.push_back(start_client(plan, number, ends[1]));
        close(ends[1]);
    }
    ~Clients() {
        end();
        close(told_);
    }
    Clients(const Clients &) = delete;
    Clients &operator=(const Clients &) = delete;

    pid_t pid_of(int number) const { return pids_.at(number - 1); }

    // The next event, or false if none comes in that time or none can come any more.
    bool next(Event &event, Milliseconds patience) {
        pollfd one = {told_, POLLIN, 0};
        return poll(&one, 1, static_cast<int>(patience.count())) > 0 &&
               read(told_, &event, sizeof(event)) == sizeof(event);
    }

    void end() {
        for (const pid_t pid : pids_) {
            kill(pid, SIGTERM);
            kill(pid, SIGCONT);
        }
        for (const pid_t pid : pids_)
            waitpid(pid, nullptr, 0);
        pids_.clear();
    }

private:
    int told_ = -1;
    std::vector<pid_t> pids_;
};

void note(const Event &event, Run &run) {
    History &history = run.history;
    switch (event.kind) {
    case Kind::granted:
        history.grants.push_back({event.token, event.client, event.at});
        break;
    case Kind::observed:
        history.observations.push_back({event.token, event.client, event.at});
        break;
    case Kind::acknowledged:
        history.acknowledged.push_back({event.client, event.id});
        break;
    case Kind::refused:
        history.refusals.push_back({event.token, event.client});
        break;
    case Kind::retried:
        run.retries++;
        break;
    case Kind::surprised:
        history.surprises.emplace_back(event.text);
        break;
    case Kind::holding:
    case Kind::inside:
        break;
    }
}

void read_writes(Session &session, Run &run) {
    const Answer answer =
        session.must("SELECT number, token, client, id, before FROM stress_writes ORDER BY number");
    for (const auto &row : answer.rows)
        run.history.writes.push_back({std::stoll(*row[0]), std::stoll(*row[1]), std::stoi(*row[2]),
                                      std::stoll(*row[3]), std::stoll(*row[4])});
}

// Writes that were refused; without the fence, those that came through all the same.
int stale_writes(const Plan &plan, const Run &run, Session &session) {
    if (plan.fenced)
        return static_cast<int>(run.history.refusals.size());
    return std::stoi(
        session
            .must("SELECT count(*) FROM (SELECT token < max(token) OVER (ORDER BY number) AS stale "
                  "FROM stress_writes) w WHERE stale")
            .value());
}

} // namespace

Run run(const Plan &plan) {
    make_tables(plan);
    Run run;
    const Clock::time_point began = Clock::now();
    Clock::time_point asked = began;
    {
        Session session("stress");
        Clients clients(plan);
        Nemesis nemesis(plan);
        Event event = {};
        bool enough = false;
        while (!enough && Clock::now() - began < plan.most) {
            if (clients.next(event, nemesis.act())) {
                note(event, run);
                nemesis.see(event, clients.pid_of(event.client));
            }
            if (Clock::now() - asked < Milliseconds(100))
                continue;
            asked = Clock::now();
            const Answer answer = session.must(
                "SELECT coalesce(max(takeovers), 0) FROM leases WHERE name = $1", {lease_name});
            run.takeovers = std::stoi(answer.value());
            enough = run.takeovers >= plan.takeovers &&
                     stale_writes(plan, run, session) >= plan.stale_writes;
        }
        run.stopped_outside = nemesis.stopped_outside();
        run.stopped_inside = nemesis.stopped_inside();
        clients.end();
        while (clients.next(event, Milliseconds(0)))
            note(event, run);
    }
    // Their sessions may end a little later.
    Session session("stress");
    for (int i = 0; i < 200; i++) {
        if (session
                .must(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'client-%'")
                .value() == "0")
            break;
        session.must("SELECT pg_sleep(0.05)");
    }
    read_writes(session, run);
    run.length = std::chrono::duration_cast<Milliseconds>(Clock::now() - began);
    return run;
}

} // namespace stress
