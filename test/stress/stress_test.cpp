// Clients that are stopped while they hold the lease, for longer than it lasts, inside and
// outside of a transaction, and go on: no write of theirs comes too late. Without the fence
// it does, and the checker says so.
#include "checker.hpp"
#include "run.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <iostream>
#include <random>

using namespace stress;

namespace {

Plan plan_from_environment() {
    Plan plan;
    const char *seed = std::getenv("SEED");
    plan.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10) : std::random_device()();
    if (std::getenv("LONG") != nullptr) {
        plan.takeovers *= 20;
        plan.stale_writes *= 20;
    }
    return plan;
}

void report(const char *what, const Plan &plan, const Run &run,
            const std::vector<Violation> &violations) {
    std::cout << what << " (SEED=" << plan.seed << "): " << run.length.count() << " ms, "
              << run.history.grants.size() << " tenures, " << run.takeovers << " takeovers, "
              << run.history.writes.size() << " writes, " << run.history.refusals.size()
              << " refused, " << run.retries << " tried again, stopped " << run.stopped_outside
              << " times outside and " << run.stopped_inside << " times inside a transaction\n";
    for (const auto &[promise, count] : count_by_promise(violations))
        std::cout << "  " << name_of(promise) << ": broken " << count << " times\n";
}

} // namespace

BOOST_AUTO_TEST_SUITE(runs)

BOOST_AUTO_TEST_CASE(with_the_fence_no_write_comes_too_late) {
    const Plan plan = plan_from_environment();
    const Run run = stress::run(plan);
    const std::vector<Violation> violations = check(run.history);
    report("with the fence", plan, run, violations);

    BOOST_TEST(run.takeovers >= plan.takeovers);
    BOOST_TEST(run.history.refusals.size() >= static_cast<std::size_t>(plan.stale_writes));
    BOOST_TEST(run.stopped_outside > 0);
    BOOST_TEST(run.stopped_inside > 0);
    BOOST_TEST(violations.empty());
    for (const Violation &violation : violations)
        BOOST_TEST_MESSAGE(name_of(violation.promise) << ": " << violation.what);
}

BOOST_AUTO_TEST_CASE(without_the_fence_the_checker_finds_what_came_too_late) {
    Plan plan = plan_from_environment();
    plan.fenced = false;
    plan.takeovers = 5;
    plan.stale_writes = 5;
    const Run run = stress::run(plan);
    const std::vector<Violation> violations = check(run.history);
    report("without the fence", plan, run, violations);

    std::map<Promise, int> counts = count_by_promise(violations);
    BOOST_TEST(counts[Promise::writes_in_order] > 0);
    BOOST_TEST(counts[Promise::no_late_write] >= plan.stale_writes);
    // Those are the fence's business only.
    BOOST_TEST(counts[Promise::tokens_rise] == 0);
    BOOST_TEST(counts[Promise::one_holder] == 0);
    BOOST_TEST(counts[Promise::own_token] == 0);
    BOOST_TEST(counts[Promise::nothing_lost] == 0);
    BOOST_TEST(counts[Promise::nothing_surprising] == 0);
}

BOOST_AUTO_TEST_SUITE_END()
