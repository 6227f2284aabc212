// The environment of the programs that leasectl runs.
#pragma once

#include <string>
#include <vector>

namespace leasectl {

// What leasectl was started with, and these in place of what was of the same name; a null pointer
// at the end. Points into `added` and into the environment.
std::vector<char *> environment_with(const std::vector<std::string> &added);

} // namespace leasectl
