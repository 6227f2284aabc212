// The rules of a lease told a second time, in other terms than the core's, for the model test.
// Invariant: nothing here calls the core; only its types and timestamp_end are shared.
#ifndef LEASE_TEST_REFERENCE_HPP
#define LEASE_TEST_REFERENCE_HPP

#include "unit.hpp"

#include <algorithm>
#include <string_view>

namespace lease {

constexpr int most_contenders = 6;
inline constexpr std::string_view owner_names[most_contenders] = {"a", "b", "c", "A", "", "a "};
inline constexpr std::string_view role_names[most_contenders] = {"r0", "r1", "r2",
                                                                 "r3", "r4", "r5"};
constexpr int nobody = -1;

enum class Answer { no, yes, error };

struct Asking {
    int who;
    std::optional<std::int64_t> token;
    bool entitled;
};

// Who is in, and from when on anybody may be; what is only told and never decides is kept as the
// row shows it. (Hands may leave somebody in without such an instant: that shuts nobody out.)
struct Reference {
    bool exists = false;
    int in = nobody;
    bool closed = false; // until `opens`
    Usec opens = 0;
    Row told;
    std::int64_t drawn = 0;

    bool shut(Usec now) const { return exists && closed && now < opens; }

    // The sum is a timestamp; `length` is not negative.
    static bool fits(Usec from, Usec length) { return from < timestamp_end - length; }

    Standing standing(const Asking &asking, Usec now) const {
        const bool same_owner = exists && in == asking.who;
        const bool same_token = !asking.token || *asking.token == told.token;
        if (!shut(now))
            return same_owner && closed && same_token ? Standing::expired : Standing::not_held;
        if (in == nobody)
            return Standing::not_held;
        if (!same_owner)
            return Standing::held_by_other;
        if (!asking.entitled)
            return Standing::other_role;
        return same_token ? Standing::holder : Standing::other_tenure;
    }

    void prolong(Usec ttl, Usec now) {
        const bool dated = opens < timestamp_end;
        if (dated && told.min_margin.value_or(after_all_time) > opens - now)
            told.min_margin = opens - now;
        opens = now + ttl;
        told.ttl = ttl;
        told.renewed_at = now;
    }

    Answer try_(const Asking &asking, Usec ttl, Usec now) {
        if (shut(now))
            return renew({asking.who, std::nullopt, asking.entitled}, ttl, now);
        if (!fits(now, ttl) || drawn == last_token || (exists && told.token == last_token))
            return Answer::error;
        if (exists && closed && in != nobody) {
            told.last_owner = owner_names[in];
            told.last_end = Ending::expired;
            told.takeovers += told.takeovers < full_count;
        }
        drawn = 1 + (exists && told.token > drawn ? told.token : drawn);
        told.token = drawn;
        told.grants += told.grants < full_count;
        told.granted_to = role_names[asking.who];
        told.acquired_at = told.renewed_at = now;
        told.ttl = ttl;
        told.min_margin = std::nullopt;
        told.session_pid = std::nullopt;
        told.session_start = std::nullopt;
        exists = closed = true;
        in = asking.who;
        opens = now + ttl;
        return Answer::yes;
    }

    Answer renew(const Asking &asking, Usec ttl, Usec now) {
        if (standing(asking, now) != Standing::holder)
            return Answer::no;
        if (!fits(now, ttl))
            return Answer::error;
        prolong(ttl, now);
        return Answer::yes;
    }

    void leave(Ending how, Usec open_from) {
        if (in != nobody) {
            told.last_owner = owner_names[in];
            told.last_end = how;
        }
        told.session_pid = std::nullopt;
        told.session_start = std::nullopt;
        in = nobody;
        opens = open_from;
    }

    Answer release(const Asking &asking, std::optional<Usec> keep, Usec now) {
        if (standing(asking, now) != Standing::holder)
            return Answer::no;
        Usec open_from = now;
        if (keep) {
            const Usec since = told.acquired_at ? *told.acquired_at : now;
            if (!fits(since, *keep))
                return Answer::error;
            open_from = std::max(now, since + *keep);
        }
        leave(Ending::released, open_from);
        return Answer::yes;
    }

    Answer break_(Usec now) {
        if (!shut(now))
            return Answer::no;
        leave(Ending::broken, now);
        return Answer::yes;
    }

    std::optional<Row> as_row() const {
        if (!exists)
            return std::nullopt;
        Row row = told;
        row.owner.reset();
        if (in != nobody)
            row.owner = owner_names[in];
        row.expiry.reset();
        if (closed)
            row.expiry = opens;
        return row;
    }
};

} // namespace lease

#endif
