// Putting words together.
#ifndef LEASE_CHAOS_TEXT_HPP
#define LEASE_CHAOS_TEXT_HPP

#include "history.hpp"

#include <sstream>
#include <string>

namespace chaos {

template <typename... Parts> std::string text(const Parts &...parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

inline const char *name_of(Kind kind) {
    constexpr const char *names[] = {"try",   "acquire", "renew",  "release", "token",
                                     "watch", "fence",   "attach", "write",   "break"};
    return names[static_cast<int>(kind)];
}

inline std::string told(const Operation &operation) {
    return text(name_of(operation.kind), " ", operation.id, " of contender ", operation.contender,
                ", lease ", operation.lease, ", token ", operation.token, ", at ", operation.asked);
}

} // namespace chaos

#endif
