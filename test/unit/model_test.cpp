// A randomised model of one lease: contenders that try, renew and release, an administrator, hands
// in the table, and a clock that also jumps both ways. After each step the core's row is compared
// with a reference that knows the rules in other terms, and with what each contender was told.
// LEASE_TEST_SEED and LEASE_TEST_STEPS replace the seed and the number of steps.

#include "reference.hpp"
#include "unit.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

using namespace lease;

namespace {

// Does with the core what the server does, without its locks.
struct Server {
    std::optional<Row> row;
    std::int64_t sequence = 0; // the last token drawn

    const Row *found() const { return row ? &*row : nullptr; }

    static Claim claim(const Asking &asking) {
        return {owner_names[asking.who], asking.token, asking.entitled};
    }

    bool is_holder(const Asking &asking, Usec now) const {
        return standing_at(found(), claim(asking), now) == Standing::holder;
    }

    Answer try_(const Asking &asking, Usec ttl, Usec now) {
        const bool free = state_at(found(), now) == State::takeable;
        if (!free && !is_holder(asking, now))
            return Answer::no;
        const std::optional<Usec> expiry = instant_after(now, ttl);
        if (!expiry)
            return Answer::error;
        if (!free) {
            row = extended(*row, ttl, *expiry, now);
            return Answer::yes;
        }
        const std::optional<std::int64_t> least = least_next_token(found());
        if (!least || sequence == last_token)
            return Answer::error;
        sequence = std::max(sequence + 1, *least);
        row = granted(found(), owner_names[asking.who], role_names[asking.who], ttl, *expiry,
                      sequence, now);
        return Answer::yes;
    }

    Answer renew(const Asking &asking, Usec ttl, Usec now) {
        if (!is_holder(asking, now))
            return Answer::no;
        const std::optional<Usec> expiry = instant_after(now, ttl);
        if (!expiry)
            return Answer::error;
        row = extended(*row, ttl, *expiry, now);
        return Answer::yes;
    }

    Answer release(const Asking &asking, std::optional<Usec> keep, Usec now) {
        if (!is_holder(asking, now))
            return Answer::no;
        const std::optional<Usec> free_from = free_after_release(*row, keep, now);
        if (!free_from)
            return Answer::error;
        row = ended(*row, Ending::released, *free_from);
        return Answer::yes;
    }

    Answer break_(Usec now) {
        if (state_at(found(), now) == State::takeable)
            return Answer::no;
        row = ended(*row, Ending::broken, now);
        return Answer::yes;
    }
};

// What a contender was told last, and nothing took away since.
struct Belief {
    bool holds = false;
    std::int64_t token = 0;
    Usec end = 0;
};

// How often each thing happened: a model that never gets anywhere proves nothing.
struct Seen {
    int grants = 0, extensions = 0, renewals = 0, renewals_too_late = 0, releases = 0, keeps = 0;
    int breaks = 0, takeovers = 0, refused = 0, refused_cooling = 0, errors = 0, edits = 0;
    int jumps_back = 0, at_expiry = 0;
};

class Episode {
public:
    Episode(std::uint64_t seed, Seen &seen) : random_(seed), seen_(seen) {
        contenders_ = 2 + below(most_contenders - 1);
        const Usec starts[] = {1000, 0, -500, 800000000000000000, timestamp_end - 2000};
        now_ = starts[below(5)];
    }

    // Empty, or what is wrong.
    std::string step() {
        move_clock();
        const std::optional<Row> before = server_.row;
        const std::int64_t drawn_before = server_.sequence;
        if (chance(3))
            edit_by_hand();
        else
            request();
        if (problem_.empty() && answer_ != Answer::yes &&
            (server_.sequence != drawn_before || !same(server_.row, before)))
            fail("a request that got nothing changed the row or drew a token");
        check();
        return problem_;
    }

    std::string story() const {
        std::ostringstream out;
        out << "now " << now_ << ", last request " << request_ << ", row "
            << (server_.row ? differences(*server_.row, Row{}) : "none") << ", reference "
            << (reference_.exists ? differences(*reference_.as_row(), Row{}) : "none");
        return out.str();
    }

private:
    std::int64_t below(std::int64_t bound) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
    }

    bool chance(int percent) { return below(100) < percent; }

    void fail(const std::string &what) {
        if (problem_.empty())
            problem_ = what;
    }

    static bool same(const std::optional<Row> &a, const std::optional<Row> &b) {
        return a.has_value() == b.has_value() && (!a || differences(*a, *b).empty());
    }

    // Mostly a little on; at times far, back, or to the instant around which all turns.
    void move_clock() {
        const Usec was = now_;
        const std::int64_t kind = below(20);
        if (kind == 0)
            now_ += below(100);
        else if (kind == 1)
            now_ -= below(60);
        else if (kind <= 4 && reference_.closed && reference_.opens > now_ - 60 &&
                 reference_.opens < now_ + 100)
            now_ = reference_.opens - 1 + below(3);
        else
            now_ += below(4);
        now_ = std::min(now_, timestamp_end - 1);
        seen_.jumps_back += now_ < was;
        seen_.at_expiry += reference_.closed && now_ == reference_.opens;
    }

    Asking someone() {
        Asking asking{static_cast<int>(below(contenders_)), std::nullopt, !chance(5)};
        if (chance(40)) // its own last one, that of the row, or a neighbour
            asking.token = chance(70) ? beliefs_[asking.who].token
                                      : reference_.told.token - 1 + (chance(50) ? 1 : 0);
        return asking;
    }

    Usec some_length() {
        if (chance(1))
            return chance(50) ? timestamp_end - std::max<Usec>(now_, 0) : after_all_time;
        return 1 + below(30);
    }

    void request() {
        Asking asking = someone();
        Belief &belief = beliefs_[asking.who];
        if (standing_at(server_.found(), Server::claim(asking), now_) !=
            reference_.standing(asking, now_))
            fail("the standing is wrong");
        const bool cooling = reference_.shut(now_) && reference_.in == nobody;
        const bool live = belief.holds && now_ < belief.end;
        const std::int64_t kind = below(100);
        Answer should = Answer::no;
        if (kind < 45) {
            request_ = "try";
            asking.token.reset(); // lease_try takes none
            const Usec ttl = some_length();
            answer_ = server_.try_(asking, ttl, now_);
            should = reference_.try_(asking, ttl, now_);
            seen_.refused += answer_ == Answer::no;
            seen_.refused_cooling += answer_ == Answer::no && cooling;
            if (answer_ == Answer::yes)
                told_yes_by_try(asking.who, live, now_ + ttl);
        } else if (kind < 75) {
            request_ = "renew";
            const Usec ttl = some_length();
            answer_ = server_.renew(asking, ttl, now_);
            should = reference_.renew(asking, ttl, now_);
            seen_.renewals_too_late += belief.holds && !live;
            if (answer_ == Answer::yes) {
                ++seen_.renewals;
                if (!live || (asking.token && *asking.token != belief.token))
                    fail("a renewal of what is not held");
                belief.end = now_ + ttl;
            }
        } else if (kind < 95) {
            request_ = "release";
            std::optional<Usec> keep;
            if (chance(50))
                keep = chance(10) ? 0 : some_length();
            answer_ = server_.release(asking, keep, now_);
            should = reference_.release(asking, keep, now_);
            if (answer_ == Answer::yes)
                told_yes_by_release(belief, live, keep);
        } else {
            request_ = "break";
            answer_ = server_.break_(now_);
            should = reference_.break_(now_);
            if (answer_ == Answer::yes) {
                ++seen_.breaks;
                forget();
            }
        }
        seen_.errors += answer_ == Answer::error;
        if (answer_ != should)
            fail("the answer is wrong");
    }

    void told_yes_by_try(int who, bool live, Usec end) {
        Belief &belief = beliefs_[who];
        const std::int64_t token = server_.row ? server_.row->token : 0;
        if (live) {
            ++seen_.extensions;
            if (token != belief.token)
                fail("an extension with another token");
            belief.end = end;
            return;
        }
        ++seen_.grants;
        if (token <= highest_)
            fail("a token that is not higher than all before");
        if (now_ < kept_until_)
            fail("a grant before the end of keep");
        for (Belief &other : beliefs_) {
            if (other.holds && now_ < other.end)
                fail("a grant beside a live tenure");
            seen_.takeovers += other.holds;
            other.holds = false;
        }
        kept_until_ = before_all_time; // reached once; the clock may go back behind it
        highest_ = token;
        acquired_at_ = now_;
        belief = {true, token, end};
    }

    void told_yes_by_release(Belief &belief, bool live, std::optional<Usec> keep) {
        ++seen_.releases;
        if (!live)
            fail("a release of what is not held");
        belief.holds = false;
        if (keep && acquired_at_) {
            ++seen_.keeps;
            kept_until_ = *acquired_at_ + *keep;
        }
    }

    void forget() {
        for (Belief &belief : beliefs_)
            belief.holds = false;
        kept_until_ = before_all_time;
    }

    // Somebody with rights on the table wrote whatever its columns take.
    void edit_by_hand() {
        request_ = "edit";
        answer_ = Answer::yes;
        ++seen_.edits;
        forget();
        acquired_at_.reset();
        Reference &r = reference_;
        r.exists = !chance(20);
        r.in = chance(30) ? nobody : static_cast<int>(below(contenders_));
        r.closed = r.exists && !chance(20);
        const Usec ends[] = {now_ - 1,          now_,           now_ + 1,       now_ + 20,
                             timestamp_end - 1, after_all_time, before_all_time};
        r.opens = ends[below(7)];
        const std::int64_t tokens[] = {
            r.told.token, 0, -7, r.drawn - 3, std::min(r.drawn, last_token - 1000) + 1000,
            last_token};
        const std::int64_t token = tokens[below(chance(5) ? 6 : 5)];
        const std::optional<Usec> instants[] = {std::nullopt, now_ - 5, now_ + 5, before_all_time,
                                                after_all_time};
        const std::int64_t counts[] = {0, -2, full_count - 1, full_count};
        if (!r.exists) {
            r.in = nobody;
            r.told = Row{};
        } else {
            r.told.token = token;
            r.told.acquired_at = instants[below(5)];
            r.told.renewed_at = instants[below(5)];
            r.told.ttl = chance(50) ? std::optional<Usec>() : below(50);
            r.told.min_margin = chance(50) ? std::optional<Usec>() : below(50) - 10;
            r.told.session_pid = chance(50) ? std::optional<std::int32_t>() : 4711;
            r.told.session_start = instants[below(5)];
            r.told.grants = counts[below(4)];
            r.told.takeovers = counts[below(4)];
            if (chance(50))
                r.told.last_end.reset();
        }
        if (r.closed && r.in != nobody) // also if it is over: the clock may go back
            beliefs_[r.in] = {true, r.told.token, r.opens};
        server_.row = r.as_row();
    }

    void check() {
        if (!same(server_.row, reference_.as_row()) || server_.sequence != reference_.drawn)
            fail("the row is wrong");
        for (const Usec at : {now_ - 1, now_, now_ + 1}) {
            const bool shut = reference_.shut(at);
            const State should = !shut                     ? State::takeable
                                 : reference_.in == nobody ? State::cooling
                                                           : State::held;
            if (state_at(server_.found(), at) != should)
                fail("the state is wrong");
        }
        int live = 0;
        for (int who = 0; who < most_contenders; ++who) {
            const Belief &belief = beliefs_[who];
            if (!belief.holds || belief.end <= now_)
                continue;
            ++live;
            if (standing_at(server_.found(), {owner_names[who], belief.token}, now_) !=
                Standing::holder)
                fail("a live tenure that the row does not know");
        }
        if (live > 1)
            fail("two live tenures");
        if ((live == 1) != (state_at(server_.found(), now_) == State::held))
            fail("held, and nobody knows of it");
    }

    std::mt19937_64 random_;
    Seen &seen_;
    std::int64_t contenders_ = 0;
    Usec now_ = 0;
    Server server_;
    Reference reference_;
    std::array<Belief, most_contenders> beliefs_;
    std::int64_t highest_ = 0;
    std::optional<Usec> acquired_at_; // of the last grant, unless a hand changed it since
    Usec kept_until_ = before_all_time;
    const char *request_ = "none";
    Answer answer_ = Answer::no;
    std::string problem_;
};

std::uint64_t setting(const char *name, std::uint64_t otherwise) {
    const char *text = std::getenv(name);
    return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

} // namespace

BOOST_AUTO_TEST_CASE(model) {
    const std::uint64_t seed = setting("LEASE_TEST_SEED", 20240229);
    const std::uint64_t steps = setting("LEASE_TEST_STEPS", 400000);
    constexpr std::uint64_t episode_steps = 500;
    Seen seen;
    std::mt19937_64 seeds(seed);
    for (std::uint64_t done = 0; done < steps; done += episode_steps) {
        Episode episode(seeds(), seen);
        for (std::uint64_t i = 0; i < episode_steps; ++i) {
            const std::string problem = episode.step();
            if (!problem.empty())
                BOOST_FAIL(problem << " after step " << done + i << " of LEASE_TEST_SEED=" << seed
                                   << ": " << episode.story());
        }
    }
    BOOST_TEST_MESSAGE(
        "grants " << seen.grants << ", of them takeovers " << seen.takeovers << "; extensions "
                  << seen.extensions << ", renewals " << seen.renewals << ", too late "
                  << seen.renewals_too_late << "; releases " << seen.releases << ", with keep "
                  << seen.keeps << "; refused " << seen.refused << ", cooling "
                  << seen.refused_cooling << "; breaks " << seen.breaks << ", errors "
                  << seen.errors << ", edits " << seen.edits << ", clock back " << seen.jumps_back
                  << ", at an expiry " << seen.at_expiry);
    const int enough = static_cast<int>(std::min<std::uint64_t>(steps, 100000000) / 500);
    for (const int count :
         {seen.grants, seen.takeovers, seen.extensions, seen.renewals, seen.renewals_too_late,
          seen.releases, seen.keeps, seen.refused, seen.refused_cooling, seen.breaks, seen.errors,
          seen.edits, seen.jumps_back, seen.at_expiry})
        BOOST_TEST(count >= enough);
}
