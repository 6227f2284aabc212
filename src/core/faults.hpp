// Faults that the chaos (test/chaos) plants, one at a time, to see that its checker finds them: in
// a build with LEASE_FAULTS, that one whose name is in the server's environment. In any other build
// there are none.
#ifndef LEASE_CORE_FAULTS_HPP
#define LEASE_CORE_FAULTS_HPP

#ifdef LEASE_FAULTS
#include <cstdlib>
#include <cstring>
#endif

namespace lease {

#ifdef LEASE_FAULTS
inline bool planted(const char *fault) noexcept {
    const char *chosen = std::getenv("LEASE_FAULT");
    return chosen != nullptr && std::strcmp(chosen, fault) == 0;
}
#else
constexpr bool planted(const char *) noexcept {
    return false;
}
#endif

} // namespace lease

#endif
