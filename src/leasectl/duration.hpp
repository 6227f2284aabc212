// Durations as people write them on a command line: 30s, 1.5min, 1h30m, 250ms, 2 (seconds).
#pragma once

#include "clock.hpp"

#include <optional>
#include <string>

namespace leasectl {

// Nothing if it is no duration, negative, or longer than a hundred years.
std::optional<Usec> parse_duration(const std::string &text);

// For people: 250 ms, 2.5 s, 3 min 20 s, 2 d 4 h.
std::string format_duration(Usec duration);

// As an interval that the server reads, whatever its settings.
std::string interval_literal(Usec duration);

} // namespace leasectl
