#include "checker.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

namespace stress {

namespace {

using Violations = std::vector<Violation>;

template <typename... Parts> std::string text(const Parts &...parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

std::string told(const Write &write) {
    return text("write ", write.number, " of client ", write.client, " with token ", write.token);
}

std::vector<Grant> by_token(std::vector<Grant> grants) {
    std::sort(grants.begin(), grants.end(),
              [](const Grant &a, const Grant &b) { return a.token < b.token; });
    return grants;
}

void check_grants(const std::vector<Grant> &grants, Violations &found) {
    for (std::size_t i = 1; i < grants.size(); i++) {
        const Grant &one = grants[i - 1];
        const Grant &next = grants[i];
        if (one.token == next.token)
            found.push_back({Promise::tokens_rise, text("token ", one.token, " was given twice")});
        else if (one.acquired_at >= next.acquired_at)
            found.push_back({Promise::tokens_rise,
                             text("token ", next.token, " was given no later than ", one.token)});
    }
}

void check_observations(const std::vector<Grant> &grants,
                        const std::vector<Observation> &observations, Violations &found) {
    for (const Observation &seen : observations) {
        // The first of the later tenures; those after it began later still.
        const auto later =
            std::upper_bound(grants.begin(), grants.end(), seen.token,
                             [](Token token, const Grant &grant) { return token < grant.token; });
        if (later != grants.end() && later->acquired_at < seen.at)
            found.push_back({Promise::one_holder,
                             text("token ", seen.token, " was live ", seen.at - later->acquired_at,
                                  " us after token ", later->token, " had begun")});
    }
}

void check_owners(const std::vector<Grant> &grants, const std::vector<Write> &writes,
                  Violations &found) {
    std::map<Token, int> owners;
    for (const Grant &grant : grants)
        owners[grant.token] = grant.client;
    for (const Write &write : writes) {
        const auto owner = owners.find(write.token);
        if (owner == owners.end() || owner->second != write.client)
            found.push_back({Promise::own_token, text(told(write), ", which was not its own")});
    }
}

void check_order(const std::vector<Write> &writes, Violations &found) {
    for (std::size_t i = 1; i < writes.size(); i++)
        if (writes[i].token < writes[i - 1].token)
            found.push_back({Promise::writes_in_order,
                             text(told(writes[i]), " follows ", told(writes[i - 1]))});
}

void check_late_writes(const std::vector<Write> &writes, Violations &found) {
    std::map<Token, std::int64_t> first; // the number of each tenure's first write
    for (const Write &write : writes)
        first.emplace(write.token, write.number);
    for (const Write &write : writes)
        for (auto later = first.upper_bound(write.token); later != first.end(); ++later)
            if (later->second < write.number) {
                found.push_back(
                    {Promise::no_late_write, text(told(write), " follows the first one of token ",
                                                  later->first, ", number ", later->second)});
                break;
            }
}

void check_updates(const std::vector<Write> &writes, Violations &found) {
    for (std::size_t i = 0; i < writes.size(); i++) {
        const Write &write = writes[i];
        if (write.number != static_cast<std::int64_t>(i) + 1)
            found.push_back({Promise::nothing_lost, text(told(write), " is at place ", i + 1)});
        if (write.before != write.number - 1)
            found.push_back({Promise::no_lost_update,
                             text(told(write), " had read ", write.before, " before")});
    }
}

void check_acknowledged(const std::vector<Acknowledged> &acknowledged,
                        const std::vector<Write> &writes, Violations &found) {
    std::multiset<std::pair<int, std::int64_t>> there;
    for (const Write &write : writes)
        there.emplace(write.client, write.id);
    for (const Acknowledged &one : acknowledged)
        if (const auto count = there.count({one.client, one.id}); count != 1)
            found.push_back(
                {Promise::nothing_lost,
                 text("write ", one.id, " of client ", one.client, " is there ", count, " times")});
}

} // namespace

const char *name_of(Promise promise) {
    switch (promise) {
    case Promise::tokens_rise:
        return "tokens rise";
    case Promise::one_holder:
        return "one holder";
    case Promise::own_token:
        return "own token";
    case Promise::writes_in_order:
        return "writes in order";
    case Promise::no_late_write:
        return "no late write";
    case Promise::no_lost_update:
        return "no lost update";
    case Promise::nothing_lost:
        return "nothing lost";
    case Promise::nothing_surprising:
        return "nothing surprising";
    }
    return "";
}

std::vector<Violation> check(const History &history) {
    Violations found;
    const std::vector<Grant> grants = by_token(history.grants);
    check_grants(grants, found);
    check_observations(grants, history.observations, found);
    check_owners(grants, history.writes, found);
    check_order(history.writes, found);
    check_late_writes(history.writes, found);
    check_updates(history.writes, found);
    check_acknowledged(history.acknowledged, history.writes, found);
    for (const std::string &surprise : history.surprises)
        found.push_back({Promise::nothing_surprising, surprise});
    return found;
}

std::map<Promise, int> count_by_promise(const std::vector<Violation> &violations) {
    std::map<Promise, int> counts;
    for (const Violation &violation : violations)
        counts[violation.promise]++;
    return counts;
}

} // namespace stress
