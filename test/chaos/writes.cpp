#include "writes.hpp"

#include "text.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace chaos {

namespace {

using Violations = std::vector<Violation>;

std::string told(const Write &write) {
    return text("write ", write.number, " of lease ", write.lease, ", of contender ",
                write.contender, " with token ", write.token);
}

std::vector<Write> writes_of(const History &history, int lease) {
    std::vector<Write> writes;
    for (const Write &write : history.writes)
        if (write.lease == lease)
            writes.push_back(write);
    std::sort(writes.begin(), writes.end(),
              [](const Write &a, const Write &b) { return a.number < b.number; });
    return writes;
}

void check_owners(const History &history, int lease, const std::vector<Write> &writes,
                  Violations &found) {
    std::set<std::pair<Token, int>> owners;
    for (const Operation &operation : history.operations)
        if (operation.lease == lease && saw_live(operation) && is_take(operation.kind))
            owners.emplace(operation.token, operation.contender);
    for (const Write &write : writes)
        if (owners.count({write.token, write.contender}) == 0)
            found.push_back({Promise::own_token, text(told(write), ", which was not its own")});
}

// Each is compared with what came before it.
void check_order(const std::vector<Write> &writes, Violations &found) {
    Token largest = 0;
    std::int64_t before_tenure = 0; // how many writes the earlier tenures made
    for (std::size_t i = 0; i < writes.size(); i++) {
        const Write &write = writes[i];
        if (write.number != static_cast<std::int64_t>(i) + 1)
            found.push_back({Promise::nothing_lost, text(told(write), " is at place ", i + 1)});
        if (write.token < largest)
            found.push_back(
                {Promise::writes_in_order, text(told(write), " follows one of token ", largest)});
        if (write.token > largest) {
            largest = write.token;
            before_tenure = write.number - 1;
        }
        if (write.before < before_tenure)
            found.push_back(
                {Promise::no_lost_update, text(told(write), " had read ", write.before, " only")});
    }
}

void check_there(const History &history, const Fates &fates, int lease,
                 const std::vector<Write> &writes, Violations &found) {
    std::map<std::pair<int, std::int64_t>, int> times;
    for (const Write &write : writes)
        times[{write.contender, write.id}]++;
    for (const Operation &operation : history.operations) {
        if (operation.lease != lease || operation.kind != Kind::wrote)
            continue;
        const Effect effect = fates.of(operation).effect;
        const int there = times[{operation.contender, operation.id}];
        const int least = effect == Effect::sure ? 1 : 0;
        const int most = effect == Effect::none ? 0 : 1;
        if (there < least || there > most)
            found.push_back({Promise::nothing_lost,
                             text(chaos::told(operation), " is there ", there, " times")});
    }
}

} // namespace

void check_writes(const History &history, const Fates &fates, int lease,
                  std::vector<Violation> &found) {
    const std::vector<Write> writes = writes_of(history, lease);
    check_owners(history, lease, writes, found);
    check_order(writes, found);
    check_there(history, fates, lease, writes, found);
}

} // namespace chaos
