#include "nemesis.hpp"

#include <algorithm>
#include <csignal>

namespace stress {

Nemesis::~Nemesis() {
    for (const auto &[client, until] : stopped_)
        kill(client, SIGCONT);
}

void Nemesis::see(const Event &event, pid_t client) {
    if (event.kind != Kind::holding && event.kind != Kind::inside)
        return;
    // Two at a time at the most: somebody has to take over.
    if (stopped_.size() >= 2 || stopped_.count(client) != 0 || !dice_.one_in(6))
        return;
    if (kill(client, SIGSTOP) != 0)
        return;
    (event.kind == Kind::inside ? inside_ : outside_)++;
    const auto ttl = static_cast<int>(plan_.ttl.count());
    stopped_[client] = Clock::now() + Milliseconds(dice_.between(ttl + ttl / 2, 3 * ttl));
}

Milliseconds Nemesis::act() {
    Milliseconds pause(50);
    const Clock::time_point now = Clock::now();
    for (auto one = stopped_.begin(); one != stopped_.end();) {
        if (one->second <= now) {
            kill(one->first, SIGCONT);
            one = stopped_.erase(one);
            continue;
        }
        pause = std::min(pause, std::chrono::duration_cast<Milliseconds>(one->second - now) +
                                    Milliseconds(1));
        ++one;
    }
    return pause;
}

} // namespace stress
