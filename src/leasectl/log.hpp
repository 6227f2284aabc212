// What leasectl tells on standard error, a line each.
#pragma once

#include <string>

namespace leasectl {

void say(const std::string &message);

// A value inside a message or table: what a terminal might obey is shown as \xNN.
std::string printable(const std::string &text);

std::string quoted(const std::string &text);

} // namespace leasectl
