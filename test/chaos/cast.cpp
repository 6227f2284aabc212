#include "cast.hpp"

#include "client.hpp"
#include "server.hpp"

#include <csignal>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chaos {

Cast::Cast(const Plan &plan, Shared &shared)
    : plan_(plan), shared_(shared), dice_(plan.seed, 1000000) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    told_ = ends[0];
    tell_ = ends[1];
    clients_.assign(plan.clients, 0);
    for (int number = 0; number < plan.clients; number++)
        start_client(number);
}

Cast::~Cast() {
    end(nemeses_);
    end_clients();
    close(told_);
    close(tell_);
}

void Cast::start_client(int number) {
    const Teller teller(tell_, number);
    const int life = ++lives_;
    clients_[number] =
        start(teller, [this, &teller, life] { be_client(plan_, shared_, teller, life); });
}

void Cast::start_nemesis(std::uint64_t part, const std::function<void(Haunt &)> &be) {
    const Teller teller(tell_, -1);
    nemeses_.push_back(start(teller, [&] {
        Haunt haunt{plan_, shared_, teller, Dice(plan_.seed, part)};
        be(haunt);
    }));
}

// Those of them that are processes: see hurt() for the others.
void Cast::start_nemeses() {
    std::uint64_t part = 2000000;
    for (const auto &[name, nemesis] : nemeses()) {
        part++;
        if (plan_.nemeses.count(name) != 0)
            start_nemesis(part, [one = nemesis](Haunt &haunt) { be_nemesis(one, haunt); });
    }
    start_nemesis(part + 1, be_heir);
}

bool Cast::next(Message &message) {
    pollfd one = {told_, POLLIN, 0};
    return poll(&one, 1, 5) > 0 && read(told_, &message, sizeof(message)) == sizeof(message);
}

bool Cast::kill_one(int number) {
    if (plan_.nemeses.count("die") == 0 || !dice_.one_in(1500))
        return false;
    const pid_t client = clients_[number];
    kill(client, SIGKILL);
    waitpid(client, nullptr, 0);
    stopped_.erase(client);
    start_client(number);
    return true;
}

// Those who hold or fence a lease; and not all: somebody has to take over.
bool Cast::stop_one(int number, bool holds) {
    const pid_t client = clients_[number];
    if (plan_.nemeses.count("stop") == 0 || !holds || stopped_.size() >= clients_.size() / 3 ||
        stopped_.count(client) != 0 || !dice_.one_in(40 / plan_.haste) ||
        kill(client, SIGSTOP) != 0)
        return false;
    stopped_[client] = now() + dice_.between(plan_.longest_ttl / 2, 3 * plan_.longest_ttl);
    return true;
}

std::vector<Message> Cast::hurt(const Message &message) {
    if (message.client < 0 || message.type != Message::Type::operation)
        return {};
    const Operation &operation = message.operation;
    const bool yes = operation.outcome == Outcome::yes;
    if (kill_one(message.client))
        return {Message::fault("client killed")};
    if (stop_one(message.client, yes))
        return {Message::fault(operation.transaction != 0 ? "client stopped in a transaction"
                                                          : "client stopped")};
    const bool keeps = operation.kind == Kind::released && operation.length >= 0 &&
                       operation.transaction == 0 && yes;
    if (plan_.nemeses.count("crash after keep") == 0 || !keeps)
        return {};
    const Usec from = now();
    crash_server();
    return {Message::crash({from, now()}),
            Message::fault("server stopped after a release that keeps")};
}

void Cast::let_go_on() {
    for (auto one = stopped_.begin(); one != stopped_.end();) {
        if (one->second > now()) {
            ++one;
            continue;
        }
        kill(one->first, SIGCONT);
        one = stopped_.erase(one);
    }
}

void Cast::end(std::vector<pid_t> &pids) {
    for (const pid_t pid : pids)
        kill(pid, SIGKILL);
    for (const pid_t pid : pids)
        waitpid(pid, nullptr, 0);
    pids.clear();
}

void Cast::end_clients() {
    stopped_.clear();
    end(clients_);
}

} // namespace chaos
