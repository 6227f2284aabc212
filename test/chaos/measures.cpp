#include "measures.hpp"

#include "text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace chaos {

namespace {

// A waiter that nobody wakes looks again after a second, so that half of them wait for longer than
// half of that.
constexpr Usec prompt = 150 * millisecond;
constexpr std::size_t enough = 10;

} // namespace

std::vector<Usec> times_of_tries(const History &history) {
    std::vector<Usec> times;
    for (const Operation &operation : history.operations)
        if (operation.kind == Kind::tried && operation.transaction == 0 &&
            operation.answered != never && history.calm.contains(operation.asked) &&
            history.calm.contains(operation.answered))
            times.push_back(operation.answered - operation.asked);
    return times;
}

std::vector<Usec> hand_overs(const History &history, const Fates &fates) {
    std::vector<const Operation *> ends;
    std::map<int, std::map<Token, const Operation *>> steps; // of each lease
    for (const Operation &operation : history.operations) {
        const bool ended = operation.kind == Kind::released && operation.length < 0;
        const bool began = operation.kind == Kind::acquired && operation.transaction == 0;
        if (saw_live(operation) && fates.of(operation).effect == Effect::sure &&
            history.calm.contains(operation.asked) && (ended || began)) {
            if (ended)
                ends.push_back(&operation);
            else
                steps[operation.lease].emplace(operation.token, &operation);
        }
    }
    std::vector<Usec> times;
    for (const Operation *end : ends) {
        const auto &of_lease = steps[end->lease];
        const auto next = of_lease.upper_bound(end->token);
        // Somebody else may have had it in between: then the wait was longer than a hand-over.
        if (next != of_lease.end() && next->second->asked < end->asked &&
            next->second->answered - fates.of(*end).by < second * 3 / 2)
            times.push_back(std::max<Usec>(0, next->second->answered - fates.of(*end).by));
    }
    return times;
}

std::int64_t count_grants(const History &history, const Fates &fates) {
    std::set<std::pair<int, Token>> tenures;
    for (const Operation &operation : history.operations)
        if (is_take(operation.kind) && saw_live(operation) &&
            fates.of(operation).effect == Effect::sure)
            tenures.emplace(operation.lease, operation.token);
    return static_cast<std::int64_t>(tenures.size());
}

Usec percentile(std::vector<Usec> times, int percent) {
    if (times.empty())
        return 0;
    std::sort(times.begin(), times.end());
    return times[(times.size() - 1) * percent / 100];
}

void check_hand_overs(const History &history, const Fates &fates, std::vector<Violation> &found) {
    const std::vector<Usec> times = hand_overs(history, fates);
    const Usec median = percentile(times, 50);
    if (times.size() >= enough && median > prompt)
        found.push_back({Promise::prompt, text("half of ", times.size(), " hand-overs took ",
                                               median, " us and more")});
}

} // namespace chaos
