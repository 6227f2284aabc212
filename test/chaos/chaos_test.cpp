// Clients do all that one can do to leases while all that can go wrong does; the checker looks
// whether what was promised was kept. And it has to find what is broken on purpose.
#include "measures.hpp"
#include "nemesis.hpp"
#include "report.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <iostream>

using namespace chaos;

namespace {

std::int64_t number_from_environment(const char *name, std::int64_t without) {
    const char *value = std::getenv(name);
    return value != nullptr ? std::strtoll(value, nullptr, 10) : without;
}

std::uint64_t seed_from_environment() {
    return number_from_environment("SEED", std::random_device()());
}

std::set<std::string> all_nemeses() {
    std::set<std::string> names = {"stop", "die"};
    for (const auto &[name, nemesis] : nemeses())
        names.insert(name);
    return names;
}

Plan plan_for(std::uint64_t seed) {
    Plan plan;
    plan.seed = seed;
    plan.nemeses = all_nemeses();
    return plan;
}

} // namespace

BOOST_AUTO_TEST_SUITE(runs)

// For as long as MINUTES says, in runs of a minute.
BOOST_AUTO_TEST_CASE(what_is_promised_is_kept_under_chaos) {
    const std::int64_t runs = number_from_environment("MINUTES", 1);
    const std::uint64_t seed = seed_from_environment();
    Report report;
    for (std::int64_t i = 0; i < runs; i++) {
        const Plan plan = plan_for(seed + i);
        std::cout << "SEED=" << plan.seed << std::endl; // now: it may not come to its end
        const Run run = chaos::run(plan);
        const std::vector<Violation> violations = report.add(run);
        std::cout << "  " << violations.size() << " violations\n";
        tell(plan, run, violations);
    }
    std::cout << report.in_words() << std::flush;

    BOOST_TEST(report.violations() == 0U);
    BOOST_TEST(report.takeovers() > 20);
    for (const char *fault :
         {"client killed", "client stopped", "client stopped in a transaction", "cancelled",
          "terminated", "backend killed", "server stopped", "connection cut", "connection frozen",
          "clock set back", "clock set forward", "broken", "purged", "old snapshot", "dumped",
          "row locked by hand"})
        BOOST_TEST(report.count(fault) > 0, fault);
}

BOOST_AUTO_TEST_CASE(without_the_fence_the_checker_finds_what_is_written_too_late) {
    Plan plan;
    plan.seed = seed_from_environment();
    plan.fenced = false;
    plan.nemeses = {"stop"};
    plan.haste = 4;
    plan.calm = 0;
    plan.chaos = 5 * second;
    plan.healing = 0;
    std::cout << "without the fence, SEED=" << plan.seed << std::endl;
    Report report;
    std::map<Promise, int> counts = count_by_promise(report.add(chaos::run(plan)));
    std::cout << report.in_words();

    BOOST_TEST(counts[Promise::writes_in_order] > 0);
    // Those are the fence's business only.
    for (const Promise promise :
         {Promise::one_holder, Promise::expired_is_lost, Promise::holder_is_told_so,
          Promise::tokens_rise, Promise::own_token, Promise::nothing_lost,
          Promise::nothing_surprising})
        BOOST_TEST(counts[promise] == 0, name_of(promise));
}

BOOST_AUTO_TEST_SUITE_END()
