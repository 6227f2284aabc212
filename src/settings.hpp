// The settings of the extension.
#ifndef LEASE_SETTINGS_HPP
#define LEASE_SETTINGS_HPP

#include "core/duration.hpp"

namespace lease {

// Defines them; called once, when the library is loaded.
void define_settings();

// lease.max_ttl in microseconds; 0: none. An error in a session that tried to get around it.
Usec max_ttl();

} // namespace lease

#endif
