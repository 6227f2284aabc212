// What all unit tests share: Boost.Test, the core, and rows compared field by field.
// Invariant: a field that Row gains and differences() does not know stops the compilation.
#ifndef LEASE_TEST_UNIT_HPP
#define LEASE_TEST_UNIT_HPP

#include "../../src/core/duration.hpp"
#include "../../src/core/tenure.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>

// The library's shared form: its sources are not compiled again with each run.
#ifndef BOOST_TEST_DYN_LINK
#define BOOST_TEST_DYN_LINK
#endif
#include <boost/test/unit_test.hpp>

namespace lease {

// As the server's timestamps have them: -infinity and infinity.
constexpr Usec before_all_time = std::numeric_limits<Usec>::min();
constexpr Usec after_all_time = std::numeric_limits<Usec>::max();
constexpr std::int64_t last_token = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t full_count = std::numeric_limits<std::int64_t>::max();

inline std::ostream &operator<<(std::ostream &out, State state) {
    constexpr const char *names[] = {"held", "cooling", "takeable"};
    return out << names[static_cast<int>(state)];
}

inline std::ostream &operator<<(std::ostream &out, Standing standing) {
    constexpr const char *names[] = {"holder",        "not_held",     "expired",
                                     "held_by_other", "other_tenure", "other_role"};
    return out << names[static_cast<int>(standing)];
}

inline std::ostream &operator<<(std::ostream &out, Ending ending) {
    constexpr const char *names[] = {"released", "expired", "broken"};
    return out << names[static_cast<int>(ending)];
}

inline std::ostream &operator<<(std::ostream &out, DurationError error) {
    constexpr const char *names[] = {"none", "infinite", "months", "negative", "zero", "too_long"};
    return out << names[static_cast<int>(error)];
}

template <typename T> void tell(std::ostream &out, const T &value) {
    out << value;
}

template <typename T> void tell(std::ostream &out, const std::optional<T> &value) {
    if (value)
        out << *value;
    else
        out << "NULL";
}

template <typename T> std::string told(const T &value) {
    std::ostringstream out;
    tell(out, value);
    return out.str();
}

// The fields in which `is` is not what it should be; empty if there are none.
inline std::string differences(const Row &is, const Row &should) {
    std::string all;
    const auto compare = [&all](const char *field, const auto &a, const auto &b) {
        if (a != b)
            all.append(field).append(" is ").append(told(a)).append(", not ").append(told(b)) +=
                "; ";
    };
    const auto &[owner, expiry, token, granted_to, acquired_at, renewed_at, ttl, session_pid,
                 session_start, grants, takeovers, min_margin, last_owner, last_end] = should;
    compare("owner", is.owner, owner);
    compare("expiry", is.expiry, expiry);
    compare("token", is.token, token);
    compare("granted_to", is.granted_to, granted_to);
    compare("acquired_at", is.acquired_at, acquired_at);
    compare("renewed_at", is.renewed_at, renewed_at);
    compare("ttl", is.ttl, ttl);
    compare("session_pid", is.session_pid, session_pid);
    compare("session_start", is.session_start, session_start);
    compare("grants", is.grants, grants);
    compare("takeovers", is.takeovers, takeovers);
    compare("min_margin", is.min_margin, min_margin);
    compare("last_owner", is.last_owner, last_owner);
    compare("last_end", is.last_end, last_end);
    return all;
}

} // namespace lease

#endif
