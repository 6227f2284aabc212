// Command lines, by getopt_long: each command gives a list of its options.
#pragma once

#include "clock.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace leasectl {

struct Option {
    const char *name;
    char letter; // 0: none
    bool has_value;
    std::function<void(const char *)> take;
};

struct Operands {
    std::vector<std::string> words;
    std::vector<char *> command; // what follows the words, with a null pointer at the end
};

// Reads options and operands in any order, up to `most` operands or "--"; what comes after
// is the command. Throws Failure(exit_usage). A first argument is skipped as the program's name.
Operands parse_options(int argc, char **argv, const std::vector<Option> &options, std::size_t most);

// The same for a command that runs no other: exactly `count` operands.
std::vector<std::string> parse_operands(int argc, char **argv, const std::vector<Option> &options,
                                        std::size_t count);

Option flag_option(const char *name, char letter, bool &set);
Option text_option(const char *name, char letter, std::optional<std::string> &value);
Option duration_option(const char *name, std::optional<Usec> &value);

} // namespace leasectl
