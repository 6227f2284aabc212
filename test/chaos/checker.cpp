#include "checker.hpp"

#include "measures.hpp"
#include "tenures.hpp"
#include "text.hpp"
#include "walk.hpp"
#include "writes.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace chaos {

namespace {

using Violations = std::vector<Violation>;
using Operations = std::vector<const Operation *>;

// In the order in which their contenders asked.
Operations operations_on(const History &history, int lease) {
    Operations operations;
    for (const Operation &operation : history.operations)
        if (operation.lease == lease)
            operations.push_back(&operation);
    std::sort(operations.begin(), operations.end(), [](const Operation *a, const Operation *b) {
        return std::tie(a->contender, a->id) < std::tie(b->contender, b->id);
    });
    return operations;
}

void check_sights(const Operations &operations, const Fates &fates, Tenures &tenures,
                  Violations &found) {
    for (const Operation *operation : operations) {
        if (!saw_live(*operation))
            continue;
        const Tenure &tenure = tenures.of(operation->token);
        if (operation->asked > tenure.later_begun_by)
            found.push_back({tenure.grant == operation ? Promise::tokens_rise : Promise::one_holder,
                             text(told(*operation), ": a tenure with a larger token began ",
                                  operation->asked - tenure.later_begun_by, " us before")});
        // A crash takes back the token of a grant that was never committed.
        if (is_take(operation->kind) && operation->contender != tenure.contender &&
            fates.of(*operation).effect == Effect::sure)
            found.push_back({Promise::tokens_rise,
                             text(told(*operation), " was given to ", tenure.contender, ", too")});
    }
}

// When the first tenure with a larger token was decided on; not by the transaction itself, which
// is not kept out by its own fence, and commits both at once.
Usec later_decided_by(const Operation &fence, Tenures &tenures) {
    Usec by = never;
    for (const Tenure &tenure : tenures.all()) {
        const Operation *grant = tenure.grant;
        const bool own = grant != nullptr && grant->contender == fence.contender &&
                         grant->transaction == fence.transaction;
        if (tenure.token > fence.token && !own)
            by = std::min(by, tenure.decided_by);
    }
    return by;
}

void check_fences(const Operations &operations, const Fates &fates, Tenures &tenures,
                  Violations &found) {
    for (const Operation *operation : operations) {
        if (operation->kind != Kind::fenced || operation->transaction == 0)
            continue;
        const Fate fate = fates.of(*operation);
        if (fate.effect != Effect::sure)
            continue;
        const Usec later = later_decided_by(*operation, tenures);
        if (fate.commit_asked > later)
            found.push_back(
                {Promise::fence_holds, text(told(*operation), ": its COMMIT was asked for ",
                                            fate.commit_asked - later, " us after a later grant")});
    }
}

// Whether all others had to see the lease held, all the time.
bool held_throughout(const Tenure &tenure, Span span, const ServerClock &clock,
                     const Tenures &tenures) {
    const std::vector<Guarantee> &all = tenure.guarantees;
    for (auto promised = all.begin(); promised != all.end(); ++promised) {
        // It counts until the next one is known, or until its holder may have ended it.
        const auto next = promised + 1;
        const bool goes_on = next != all.end() && next->since == promised->before;
        const Usec to = std::min(span.to, goes_on ? next->known_by : promised->before);
        if (promised->known_by > span.from || to <= span.from)
            continue;
        if (tenures.left_of(*promised, to, clock) == 0)
            return false;
        if (to == span.to)
            return true;
        span.from = to;
    }
    return false;
}

void check_watchers(const Operations &operations, const ServerClock &clock, Tenures &tenures,
                    Violations &found) {
    for (const Operation *operation : operations) {
        if (operation->kind != Kind::watched || operation->outcome != Outcome::no)
            continue;
        const Span when{operation->asked, operation->answered};
        for (const Tenure &tenure : tenures.all())
            // Its own block sees what it did to its tenure, and has not committed.
            if ((operation->transaction == 0 || operation->contender != tenure.contender) &&
                held_throughout(tenure, when, clock, tenures))
                found.push_back(
                    {Promise::holder_is_told_so,
                     text(told(*operation), ": nobody, but token ", tenure.token, " lasts")});
    }
}

// By how much the grant came too early for what was promised to the tenure before; 0: it did not.
Usec cut_short(const Guarantee &promised, const Operation &grant, const ServerClock &clock,
               const Tenures &tenures) {
    const bool concerned = promised.since <= grant.answered && grant.answered < promised.before;
    return concerned ? tenures.left_of(promised, grant.answered, clock) : 0;
}

void check_grant(const Operation &grant, const Tenure &earlier, const ServerClock &clock,
                 const Tenures &tenures, Violations &found) {
    for (const Guarantee &promised : earlier.guarantees)
        if (const Usec cut = cut_short(promised, grant, clock, tenures); cut > 0)
            found.push_back({Promise::one_holder, text(told(grant), ": token ", earlier.token,
                                                       " lasts for ", cut, " us more")});
    if (const Usec cut = cut_short(earlier.kept, grant, clock, tenures); cut > 0)
        found.push_back(
            {Promise::kept_free, text(told(grant), ": kept free for ", cut, " us more")});
}

void check_grants(const ServerClock &clock, Tenures &tenures, Violations &found) {
    constexpr std::ptrdiff_t look_back = 10;
    const std::vector<Tenure> &all = tenures.all();
    for (auto tenure = all.begin(); tenure != all.end(); ++tenure)
        if (tenure->grant != nullptr)
            for (auto earlier = tenure - std::min(look_back, tenure - all.begin());
                 earlier != tenure; ++earlier)
                check_grant(*tenure->grant, *earlier, clock, tenures, found);
}

void check_progress(const History &history, const Operations &operations, const Fates &fates,
                    int lease, Violations &found) {
    if (history.healing.to == 0)
        return;
    const auto granted = [&](const Operation *operation) {
        return is_take(operation->kind) && history.healing.contains(operation->answered) &&
               fates.of(*operation).effect == Effect::sure;
    };
    if (std::none_of(operations.begin(), operations.end(), granted))
        found.push_back({Promise::progress, text("lease ", lease, " was granted no more")});
}

void check_lease(const History &history, const Fates &fates, int lease, Violations &found) {
    const Operations operations = operations_on(history, lease);
    const ServerClock clock(history.shifts);
    Tenures tenures(fates, operations);
    check_sights(operations, fates, tenures, found);
    check_fences(operations, fates, tenures, found);

    for (auto from = operations.begin(); from != operations.end();) {
        Walk walk(history, fates, tenures, found);
        const int contender = (*from)->contender;
        for (; from != operations.end() && (*from)->contender == contender; ++from)
            walk.see(**from);
        walk.end();
    }
    check_grants(clock, tenures, found);
    check_watchers(operations, clock, tenures, found);
    check_progress(history, operations, fates, lease, found);
}

// A lock is never left. A transaction ID is: by a try that found the lease free, and lost it to
// somebody who changed or locked the row in the microseconds before the try's own change. That is
// one in many thousands; what takes one each time, or each time it has waited, is found.
void check_losers(const History &history, Violations &found) {
    for (const std::string &leftover : history.leftovers)
        found.push_back({Promise::losing_is_free, leftover});
    const auto losing =
        std::count_if(history.operations.begin(), history.operations.end(), [](const auto &o) {
            return o.kind == Kind::tried && o.outcome == Outcome::no;
        });
    if (static_cast<std::int64_t>(history.ids.size()) > 1 + losing / 1000)
        for (const std::string &id : history.ids)
            found.push_back({Promise::losing_is_free, id});
}

} // namespace

const char *name_of(Promise promise) {
    constexpr const char *names[] = {"one holder",   "expired is lost",   "holder is told so",
                                     "kept free",    "tokens rise",       "fence holds",
                                     "own token",    "writes in order",   "no lost update",
                                     "nothing lost", "losing is free",    "progress",
                                     "prompt",       "nothing surprising"};
    return names[static_cast<int>(promise)];
}

std::vector<Violation> check(const History &history) {
    Violations found;
    const Fates fates(history.transactions);
    for (int lease = 0; lease < history.leases; lease++) {
        check_lease(history, fates, lease, found);
        check_writes(history, fates, lease, found);
    }
    check_hand_overs(history, fates, found);
    check_losers(history, found);
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

} // namespace chaos
