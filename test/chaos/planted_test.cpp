// The checker finds what is broken on purpose: the fault that LEASE_FAULT names, see
// src/core/faults.hpp. test/chaos/faults runs this for each of them, on a build that has them.
#include "report.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <iostream>

using namespace chaos;

namespace {

// What goes wrong besides, so that it shows, by what it shows, and what else the run needs.
struct Planted {
    std::set<std::string> nemeses;
    std::set<Promise> shows;
    void (*arrange)(Plan &) = [](Plan &) {};
};

// Clients come to the gate of one lease while the clock takes its tenures away.
void at_one_gate(Plan &plan) {
    plan.habit = Habit::duel;
    plan.clients = 4;
    plan.leases = 1;
}

// A row is missed by who looks for it without knowing its place, while it moves.
void rows_on_the_move(Plan &plan) {
    plan.habit = Habit::renew;
    plan.haste = 1;
    plan.clients = 6;
    plan.watchers = 4;
    plan.leases = 2;
}

// What is kept must last for longer than the server takes to start again.
void long_kept(Plan &plan) {
    plan.clients = 3;
    plan.leases = 2;
    plan.longest_ttl = 3 * second;
}

void in_peace(Plan &plan) {
    plan.calm = 10 * second;
    plan.chaos = 0;
}

const std::map<std::string, Planted> faults = {
    {"expiry-wrong-side", {{}, {Promise::one_holder}}},
    {"expiry-not-tested", {{}, {Promise::expired_is_lost}}},
    {"gate-left-out", {{"stop"}, {Promise::fence_holds}}},
    {"gate-back-early", {{"clock"}, {Promise::fence_holds}, at_one_gate}},
    {"token-not-bumped", {{}, {Promise::tokens_rise}}},
    {"fence-not-to-end", {{"stop"}, {Promise::fence_holds}}},
    {"clock-before-wait", {{}, {Promise::one_holder, Promise::holder_is_told_so}}},
    {"hint-not-checked", {{"purge"}, {Promise::one_holder, Promise::holder_is_told_so}}},
    {"missing-believed", {{"move", "snapshot"}, {Promise::holder_is_told_so}, rows_on_the_move}},
    {"keep-asynchronous", {{"crash after keep"}, {Promise::kept_free}, long_kept}},
    {"wake-up-lost", {{}, {Promise::prompt}, in_peace}},
};

Plan plan_for(const Planted &fault, std::uint64_t seed) {
    Plan plan;
    plan.seed = seed;
    plan.nemeses = fault.nemeses;
    plan.haste = 4;
    plan.calm = second;
    plan.chaos = 10 * second;
    plan.healing = 0;
    fault.arrange(plan);
    return plan;
}

// The server takes the fault, or none, from our environment when it is started.
std::map<Promise, int> broken_in_run(const Plan &plan) {
    Report report;
    const Run run = chaos::run(plan);
    const std::vector<Violation> violations = report.add(run);
    std::cout << report.in_words();
    tell(plan, run, violations);
    return count_by_promise(violations);
}

} // namespace

BOOST_AUTO_TEST_CASE(planted, *boost::unit_test::disabled()) {
    const std::string name = std::getenv("LEASE_FAULT");
    const Planted &fault = faults.at(name);
    const Usec began = now();
    std::uint64_t seed = 0;
    int found = 0;
    while (found == 0 && now() - began < 45 * second) {
        const auto counts = broken_in_run(plan_for(fault, ++seed));
        for (const Promise promise : fault.shows)
            found += counts.count(promise) != 0 ? counts.at(promise) : 0;
    }
    std::cout << name << ": " << found << " violations of what it breaks, after "
              << (now() - began) / second << " s\nThe same without it:" << std::endl;
    BOOST_TEST(found > 0);

    unsetenv("LEASE_FAULT");
    for (std::uint64_t again = 1; again <= seed; again++)
        for (const auto &[promise, count] : broken_in_run(plan_for(fault, again)))
            BOOST_TEST(count == 0, name_of(promise));
}
