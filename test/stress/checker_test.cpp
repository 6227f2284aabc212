// The checker finds what it is there for, and nothing else: small histories made by hand.
#include "checker.hpp"

#include <boost/test/unit_test.hpp>

using namespace stress;

namespace {

// Two tenures, 10 of client 1 and 20 of client 2, two writes each; as it should be.
History good() {
    History history;
    history.grants = {{20, 2, 2000}, {10, 1, 1000}};
    history.observations = {{10, 1, 1000}, {10, 1, 1999}, {20, 2, 2000}, {20, 2, 9000}};
    history.writes = {{1, 10, 1, 1, 0}, {2, 10, 1, 2, 1}, {3, 20, 2, 1, 2}, {4, 20, 2, 2, 3}};
    history.acknowledged = {{1, 1}, {1, 2}, {2, 2}}; // one answer got lost: it may be there
    history.refusals = {{10, 1}};
    return history;
}

void expect(const History &history, const std::map<Promise, int> &counts) {
    std::map<Promise, int> found = count_by_promise(check(history));
    for (const auto &[promise, count] : counts)
        BOOST_TEST(found[promise] == count, name_of(promise) << ": " << found[promise]);
    for (const auto &[promise, count] : found)
        BOOST_TEST((counts.count(promise) == 1 || count == 0), "also: " << name_of(promise));
}

} // namespace

BOOST_AUTO_TEST_SUITE(checker)

BOOST_AUTO_TEST_CASE(finds_nothing_in_a_good_history) {
    BOOST_TEST(check(good()).empty());
    BOOST_TEST(check(History{}).empty());
}

BOOST_AUTO_TEST_CASE(finds_a_write_after_the_first_one_of_a_later_tenure) {
    History history = good();
    history.writes = {{1, 10, 1, 1, 0}, {2, 20, 2, 1, 1}, {3, 10, 1, 2, 2}, {4, 20, 2, 2, 3}};
    expect(history, {{Promise::writes_in_order, 1}, {Promise::no_late_write, 1}});
    // The last of all: tokens go down once, and stay down for two writes.
    history.writes = {{1, 20, 2, 1, 0}, {2, 10, 1, 1, 1}, {3, 10, 1, 2, 2}, {4, 20, 2, 2, 3}};
    expect(history, {{Promise::writes_in_order, 1}, {Promise::no_late_write, 2}});
}

BOOST_AUTO_TEST_CASE(finds_a_lost_update) {
    History history = good();
    history.writes[2].before = 1;
    expect(history, {{Promise::no_lost_update, 1}});
}

BOOST_AUTO_TEST_CASE(finds_tokens_that_do_not_rise) {
    History history = good();
    history.grants = {{10, 1, 1000}, {20, 2, 999}};
    history.observations = {};
    expect(history, {{Promise::tokens_rise, 1}});
    history.grants = {{10, 1, 1000}, {20, 2, 2000}, {20, 2, 3000}};
    expect(history, {{Promise::tokens_rise, 1}});
}

BOOST_AUTO_TEST_CASE(finds_two_holders_at_a_time) {
    History history = good();
    history.observations.push_back({10, 1, 2000}); // the very moment: not yet
    expect(history, {});
    history.observations.push_back({10, 1, 2001});
    expect(history, {{Promise::one_holder, 1}});
}

BOOST_AUTO_TEST_CASE(finds_a_token_of_somebody_else) {
    History history = good();
    history.writes[3].client = 3;
    history.acknowledged.pop_back();
    expect(history, {{Promise::own_token, 1}});
    history.writes[3].token = 30;
    expect(history, {{Promise::own_token, 1}});
}

BOOST_AUTO_TEST_CASE(finds_what_was_acknowledged_and_is_lost_or_there_twice) {
    History history = good();
    history.acknowledged.push_back({2, 7});
    expect(history, {{Promise::nothing_lost, 1}});
    history = good();
    history.writes[1].id = 1;
    expect(history, {{Promise::nothing_lost, 2}});
    history = good();
    history.writes.erase(history.writes.begin()); // and with it the count of all that follow
    expect(history, {{Promise::nothing_lost, 4}});
}

BOOST_AUTO_TEST_CASE(finds_errors_that_should_not_be) {
    History history = good();
    history.surprises.emplace_back("XX000");
    expect(history, {{Promise::nothing_surprising, 1}});
}

BOOST_AUTO_TEST_SUITE_END()
