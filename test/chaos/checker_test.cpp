// The checker finds what it is there for, and nothing else: small histories made by hand.
// Times are in milliseconds.
#include "checker.hpp"

#include <boost/test/unit_test.hpp>

#include <utility>

using namespace chaos;

namespace {

// Contenders 1 and 2 and one lease. Every call that is not told otherwise takes a millisecond.
struct Story {
    History history;
    std::int64_t last_id = 0;
    std::int64_t block = 0; // that the calls are in

    Story() { history.leases = 1; }

    Operation &add(int contender, Kind kind, Usec at, Outcome outcome, Token token,
                   Usec length = -1) {
        Operation operation;
        operation.kind = kind;
        operation.outcome = outcome;
        operation.contender = contender;
        operation.id = ++last_id;
        operation.transaction = block;
        operation.token = token;
        operation.length = length < 0 ? -1 : length * millisecond;
        operation.asked = at * millisecond;
        operation.answered = outcome == Outcome::unknown ? never : (at + 1) * millisecond;
        return history.operations.emplace_back(operation);
    }
    Operation &yes(int contender, Kind kind, Usec at, Token token, Usec length = -1) {
        return add(contender, kind, at, Outcome::yes, token, length);
    }
    void commit(int contender, Usec at, Outcome outcome = Outcome::yes) {
        history.transactions.push_back(
            {contender, block, outcome, at * millisecond,
             outcome == Outcome::unknown ? never : (at + 1) * millisecond});
        block = 0;
    }
    // The server's clock reads `offset` more from then on.
    void shift(Usec at, Usec offset) {
        history.shifts.push_back({at * millisecond, at * millisecond, offset * millisecond});
    }
    void expect(const std::map<Promise, int> &counts) const {
        std::map<Promise, int> found = count_by_promise(check(history));
        for (const auto &[promise, count] : counts)
            BOOST_TEST(found[promise] == count, name_of(promise) << ": " << found[promise]);
        for (const auto &[promise, count] : found)
            BOOST_TEST((counts.count(promise) == 1 || count == 0), "also: " << name_of(promise));
    }
};

// Contender 1 from 100 on for 100 ms, contender 2 from 300 on.
Story two_tenures() {
    Story story;
    story.yes(1, Kind::tried, 100, 10, 100);
    story.yes(2, Kind::acquired, 300, 20, 100);
    return story;
}

} // namespace

BOOST_AUTO_TEST_SUITE(checker)

BOOST_AUTO_TEST_CASE(finds_nothing_in_a_good_history) {
    Story().expect({});
    Story story = two_tenures();
    story.yes(1, Kind::looked, 150, 10);
    story.yes(1, Kind::renewed, 199, 10, 50);
    story.add(1, Kind::renewed, 260, Outcome::no, 0, 50);
    story.yes(2, Kind::released, 310, 20, 100);
    story.yes(1, Kind::tried, 400, 30, 10);
    story.expect({});
}

BOOST_AUTO_TEST_CASE(finds_a_tenure_that_begins_before_the_end_of_another) {
    Story story = two_tenures();
    story.yes(1, Kind::renewed, 150, 10, 151); // may end as soon as at 301, when 2 is answered
    story.expect({});
    story.history.operations.back().length += 1;
    story.expect({{Promise::one_holder, 1}});
    // Unless it ended, or may have ended, in another way.
    for (const auto &[kind, outcome] :
         {std::pair(Kind::released, Outcome::yes), std::pair(Kind::released, Outcome::unknown),
          std::pair(Kind::broken, Outcome::yes), std::pair(Kind::broken, Outcome::unknown)}) {
        Story ended = story;
        ended.add(1, kind, 200, outcome, kind == Kind::broken ? 0 : 10);
        ended.expect({});
    }
    story.yes(1, Kind::attached, 160, 10);
    story.expect({});
}

BOOST_AUTO_TEST_CASE(counts_an_extension_only_if_it_was_committed) {
    for (const Outcome outcome : {Outcome::yes, Outcome::no, Outcome::unknown}) {
        Story story = two_tenures();
        story.block = 1;
        story.yes(1, Kind::renewed, 150, 10, 500);
        story.commit(1, 152, outcome);
        story.expect({{Promise::one_holder, outcome == Outcome::yes ? 1 : 0}});
    }
    Story undone = two_tenures();
    undone.block = 1;
    undone.yes(1, Kind::renewed, 150, 10, 500).undone = true;
    undone.commit(1, 152);
    undone.expect({});
}

BOOST_AUTO_TEST_CASE(knows_that_a_block_sees_what_it_did_itself) {
    Story story = two_tenures();
    story.block = 1;
    story.yes(1, Kind::tried, 110, 10, 20);
    story.add(1, Kind::fenced, 140, Outcome::no, 10); // and it is rolled back
    story.expect({});
    Story released = two_tenures();
    released.block = 1;
    released.yes(1, Kind::released, 110, 0);
    released.add(1, Kind::fenced, 120, Outcome::no, 10);
    released.expect({});
}

BOOST_AUTO_TEST_CASE(goes_by_the_clock_of_the_server) {
    Story story = two_tenures();
    story.history.operations.pop_back();
    story.yes(2, Kind::tried, 150, 20, 100);
    story.expect({{Promise::one_holder, 1}});
    story.shift(140, 60);
    story.expect({});
    story.history.shifts.back().offset = 40 * millisecond;
    story.expect({{Promise::one_holder, 1}});
    // It ended while the clock was ahead.
    story.shift(151, 0);
    story.history.shifts.front().offset = 60 * millisecond;
    story.expect({});
}

BOOST_AUTO_TEST_CASE(finds_a_tenure_that_lives_on_beside_a_later_one) {
    Story story = two_tenures();
    story.yes(1, Kind::attached, 110, 10);
    story.yes(1, Kind::looked, 301, 10); // asked when the other grant was answered
    story.expect({});
    story.history.operations.back().asked += 1;
    story.expect({{Promise::one_holder, 1}});
    story.history.operations.back().kind = Kind::watched;
    story.history.operations.back().contender = 3;
    story.expect({{Promise::one_holder, 1}});
}

BOOST_AUTO_TEST_CASE(finds_what_is_live_after_it_ran_out_or_was_released) {
    Story story = two_tenures();
    story.yes(1, Kind::renewed, 201, 10, 20); // asked when it may have been live still
    story.expect({});
    story.history.operations.back().asked += 1;
    story.expect({{Promise::expired_is_lost, 1}});
    story.shift(150, -50); // it lasts longer
    story.expect({});

    Story released = two_tenures();
    released.yes(1, Kind::released, 150, 10);
    released.yes(1, Kind::looked, 160, 10);
    released.expect({{Promise::expired_is_lost, 1}});
    released.history.crashes = {{149 * millisecond, 170 * millisecond}}; // may have forgotten it
    released.expect({});
}

BOOST_AUTO_TEST_CASE(finds_a_holder_that_is_denied) {
    for (const Kind kind :
         {Kind::renewed, Kind::looked, Kind::released, Kind::fenced, Kind::tried}) {
        Story story = two_tenures();
        Operation &denied = story.add(1, kind, 150, Outcome::no, 0);
        story.expect({{Promise::holder_is_told_so, 1}});
        denied.token = 9; // another tenure
        story.expect({});
        denied.token = 10;
        denied.answered = 200 * millisecond; // it may have run out by then
        story.expect({});
    }
    Story back = two_tenures();
    back.add(1, Kind::looked, 150, Outcome::no, 0);
    back.shift(120, 100); // it ran out, and somebody else may have had it since
    back.shift(130, 0);
    back.expect({});
    Story story = two_tenures();
    story.add(1, Kind::tried, 120, Outcome::unknown, 0, 1); // may shorten it at any time
    story.add(1, Kind::looked, 150, Outcome::no, 0);
    story.expect({});
}

BOOST_AUTO_TEST_CASE(knows_that_what_is_attached_may_end_with_its_session) {
    for (const bool attaches : {true, false}) {
        Story story;
        story.yes(1, Kind::tried, 100, 10, 100);
        // It had run out when the token was asked for; but then the clock was set back, say.
        story.add(1, attaches ? Kind::attached : Kind::renewed, 110, Outcome::unknown, 0).answered =
            111 * millisecond;
        story.yes(1, Kind::renewed, 120, 10, 100);
        story.add(3, Kind::watched, 130, Outcome::no, 0);
        story.expect({{Promise::holder_is_told_so, attaches ? 0 : 1}});
    }
}

BOOST_AUTO_TEST_CASE(finds_a_watcher_that_sees_no_holder) {
    Story story;
    story.yes(1, Kind::tried, 100, 10, 50);
    story.yes(1, Kind::renewed, 110, 10, 100);
    const std::size_t watch = story.history.operations.size();
    story.add(3, Kind::watched, 109, Outcome::no, 0).answered = 115 * millisecond;
    story.expect({{Promise::holder_is_told_so, 1}});
    Story open = story; // nobody else knows of a grant that has not been committed
    open.block = 1;
    open.history.operations[0].transaction = 1;
    open.commit(1, 109);
    open.expect({});
    Story broken = story; // before the watch, and after what made it sure
    broken.add(9, Kind::broken, 105, Outcome::unknown, 0).answered = 106 * millisecond;
    broken.expect({});
    Story own = story; // its block has made it shorter, for itself
    own.history.operations[watch].contender = 1;
    own.history.operations[watch].transaction = 1;
    own.expect({});
    own.history.operations[watch].transaction = 0;
    own.expect({{Promise::holder_is_told_so, 1}});
    // An extension that came to nothing does not reach back before it was asked for.
    Story later = story;
    later.block = 1;
    later.yes(1, Kind::renewed, 120, 10, 100);
    later.commit(1, 122, Outcome::no);
    later.shift(118, 1);
    later.expect({{Promise::holder_is_told_so, 1}});
    story.history.operations[watch].answered = 210 * millisecond;
    story.expect({});
    story.history.operations[watch].asked = 99 * millisecond;
    story.expect({});
}

BOOST_AUTO_TEST_CASE(finds_a_grant_while_the_lease_is_kept_from_all) {
    Story story = two_tenures();
    story.yes(1, Kind::released, 110, 10, 201); // to 301 at least
    story.expect({});
    story.history.operations.back().length += 1;
    story.expect({{Promise::kept_free, 1}});
    story.history.crashes = {{120 * millisecond, 130 * millisecond}}; // makes no difference
    story.expect({{Promise::kept_free, 1}});
    story.yes(9, Kind::broken, 299, 0);
    story.expect({});

    // It is kept from when it was acquired: by a call whose answer got lost, perhaps.
    Story lost;
    lost.add(1, Kind::acquired, 50, Outcome::unknown, 0, 100);
    lost.yes(1, Kind::tried, 100, 10, 100);
    lost.yes(1, Kind::released, 110, 10, 202);
    lost.yes(2, Kind::acquired, 300, 20, 100);
    lost.expect({});
}

BOOST_AUTO_TEST_CASE(finds_tokens_that_do_not_rise) {
    Story story = two_tenures();
    story.history.operations.back().token = 9;
    story.expect({{Promise::tokens_rise, 1}});
    story.history.operations.back().token = 10;
    story.expect({{Promise::tokens_rise, 1}});
    // A grant that a crash took back, before it was committed.
    story.history.operations.front().transaction = 1;
    story.block = 1;
    story.commit(1, 102, Outcome::unknown);
    story.expect({});
    story.history.writes = {{0, 1, 10, 2, 3, 0}};
    story.yes(2, Kind::wrote, 310, 10);
    story.history.operations.back().id = 3;
    story.expect({});
}

BOOST_AUTO_TEST_CASE(knows_that_a_wait_ended_after_the_last_sight_of_the_tenure_before) {
    Story story;
    story.yes(1, Kind::tried, 100, 10, 100);
    story.yes(2, Kind::acquired, 101, 20, 100).answered = 151 * millisecond;
    story.yes(1, Kind::released, 150, 10);
    story.add(2, Kind::looked, 240, Outcome::no, 20);
    story.expect({{Promise::holder_is_told_so, 1}});
    story.history.operations[2].asked = 120 * millisecond;
    story.expect({});
}

BOOST_AUTO_TEST_CASE(finds_a_fence_that_did_not_hold) {
    Story story = two_tenures();
    story.block = 1;
    story.yes(1, Kind::fenced, 150, 10);
    story.commit(1, 301);
    story.expect({});
    story.history.transactions.back().asked += 1;
    story.expect({{Promise::fence_holds, 1}});
    story.history.operations.back().undone = true;
    story.expect({});
    story.history.operations.back().undone = false;
    story.history.transactions.back().outcome = Outcome::no;
    story.expect({});

    // What ran out is granted anew to the transaction itself, which commits both at once.
    Story again;
    again.yes(1, Kind::tried, 100, 10, 100);
    again.block = 1;
    again.yes(1, Kind::fenced, 150, 10);
    again.yes(1, Kind::acquired, 300, 20, 100);
    again.commit(1, 310);
    again.expect({});
    again.yes(2, Kind::acquired, 305, 30, 100);
    again.expect({{Promise::fence_holds, 1}, {Promise::one_holder, 1}});
}

// Two tenures, two writes each.
static Story writes() {
    Story story = two_tenures();
    for (const auto &[contender, token] : {std::pair(1, 10), std::pair(2, 20)})
        for (int i = 0; i < 2; i++) {
            story.block = 10 * contender + i;
            const Usec at = contender == 1 ? 150 : 350;
            const Operation &write = story.yes(contender, Kind::wrote, at, token);
            const auto number = static_cast<std::int64_t>(story.history.writes.size()) + 1;
            story.history.writes.push_back({0, number, token, contender, write.id, number - 1});
            story.commit(contender, at + 1);
        }
    return story;
}

BOOST_AUTO_TEST_CASE(finds_a_write_after_the_first_one_of_a_later_tenure) {
    Story story = writes();
    story.expect({});
    std::swap(story.history.writes[1].number, story.history.writes[2].number);
    std::swap(story.history.writes[1].before, story.history.writes[2].before);
    story.expect({{Promise::writes_in_order, 1}});
}

BOOST_AUTO_TEST_CASE(finds_a_lost_update) {
    Story story = writes();
    story.history.writes[3].before = 2; // of its own tenure: two sessions may be at it
    story.expect({});
    story.history.writes[3].before = 1;
    story.expect({{Promise::no_lost_update, 1}});
}

BOOST_AUTO_TEST_CASE(finds_a_token_of_somebody_else) {
    Story story = writes();
    story.history.writes[3].token = 30;
    story.expect({{Promise::own_token, 1}});
}

BOOST_AUTO_TEST_CASE(finds_writes_that_are_lost_or_there_twice_or_were_rolled_back) {
    Story story = writes();
    story.history.writes.pop_back();
    story.expect({{Promise::nothing_lost, 1}});
    story.history.transactions.back() = {2, 21, Outcome::unknown, 351 * millisecond, never};
    story.expect({});
    story = writes();
    story.history.transactions.back().outcome = Outcome::no;
    story.expect({{Promise::nothing_lost, 1}});
    story = writes();
    story.history.writes.push_back(story.history.writes.back());
    story.expect({{Promise::nothing_lost, 2}}); // in the wrong place, too
}

BOOST_AUTO_TEST_CASE(finds_a_lease_that_nobody_gets_any_more) {
    Story story = two_tenures();
    story.history.healing = {250 * millisecond, 400 * millisecond};
    story.expect({});
    story.history.healing.from = 350 * millisecond;
    story.expect({{Promise::progress, 1}});
}

BOOST_AUTO_TEST_CASE(finds_waits_that_nobody_ended) {
    Story story;
    story.history.calm = {0, 100000 * millisecond};
    for (int i = 0; i < 20; i++) {
        story.yes(1, Kind::tried, 1000 * i, 10 + 2 * i, 900);
        story.yes(2, Kind::acquired, 1000 * i + 10, 11 + 2 * i, 100).answered += 200 * millisecond;
        story.yes(1, Kind::released, 1000 * i + 100, 10 + 2 * i);
    }
    story.expect({});
    for (Operation &operation : story.history.operations)
        if (operation.kind == Kind::acquired)
            operation.answered += 100 * millisecond;
    story.expect({{Promise::prompt, 1}});
}

BOOST_AUTO_TEST_CASE(finds_errors_and_leftovers) {
    Story story = two_tenures();
    story.history.surprises.emplace_back("XX000");
    story.history.leftovers.emplace_back("a lock");
    story.expect({{Promise::nothing_surprising, 1}, {Promise::losing_is_free, 1}});
}

BOOST_AUTO_TEST_CASE(forgives_a_transaction_id_of_a_lost_race_but_not_of_many) {
    Story story = two_tenures();
    story.history.ids = {"an id"};
    story.expect({});
    story.history.ids.emplace_back("one more");
    story.expect({{Promise::losing_is_free, 2}});
    for (int i = 0; i < 1000; i++)
        story.add(3, Kind::tried, 110, Outcome::no, 0);
    story.expect({});
    story.history.leftovers = {"a lock"};
    story.expect({{Promise::losing_is_free, 1}});
}

BOOST_AUTO_TEST_SUITE_END()
