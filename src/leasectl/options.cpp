#include "options.hpp"

#include "duration.hpp"
#include "exit_status.hpp"
#include "log.hpp"

#include <algorithm>

#include <getopt.h>

namespace leasectl {

namespace {

constexpr int first_long_only = 256;

struct GetoptTables {
    std::string letters = "-:"; // operands come in order; a missing value is told apart
    std::vector<option> longs;
};

GetoptTables make_tables(const std::vector<Option> &options) {
    GetoptTables tables;
    int number = first_long_only;
    for (const Option &each : options) {
        tables.longs.push_back(
            {each.name, each.has_value ? required_argument : no_argument, nullptr, number++});
        if (each.letter == 0)
            continue;
        tables.letters += each.letter;
        if (each.has_value)
            tables.letters += ':';
    }
    tables.longs.push_back({nullptr, 0, nullptr, 0});
    return tables;
}

const Option &find_option(const std::vector<Option> &options, int code) {
    if (code >= first_long_only)
        return options[static_cast<std::size_t>(code - first_long_only)];
    for (const Option &each : options)
        if (each.letter == code)
            return each;
    throw Failure(exit_usage, "unexpected option");
}

} // namespace

Operands parse_options(int argc, char **argv, const std::vector<Option> &options,
                       std::size_t most) {
    const GetoptTables tables = make_tables(options);
    Operands operands;
    optind = 0; // glibc: begin anew
    opterr = 0;
    int rest = -1;
    for (;;) {
        const int word = std::max(optind, 1); // where getopt is, also inside of "-vq"
        const int code =
            getopt_long(argc, argv, tables.letters.c_str(), tables.longs.data(), nullptr);
        if (code == -1)
            break;
        if (code == 1 && operands.words.size() == most) {
            rest = optind - 1;
            break;
        }
        if (code == 1)
            operands.words.emplace_back(optarg);
        else if (code == ':')
            throw Failure(exit_usage, std::string(argv[optind - 1]) + " needs a value");
        else if (code == '?')
            throw Failure(exit_usage, "unknown option " + quoted(argv[word]));
        else
            find_option(options, code).take(optarg);
    }
    for (int i = rest < 0 ? optind : rest; i < argc; i++) {
        if (operands.words.size() < most)
            operands.words.emplace_back(argv[i]);
        else
            operands.command.push_back(argv[i]);
    }
    operands.command.push_back(nullptr);
    return operands;
}

std::vector<std::string> parse_operands(int argc, char **argv, const std::vector<Option> &options,
                                        std::size_t count) {
    Operands operands = parse_options(argc, argv, options, count);
    if (operands.words.size() < count)
        throw Failure(exit_usage, "the name of a lease is missing");
    if (operands.command.size() > 1)
        throw Failure(exit_usage,
                      "too many arguments, the first is " + quoted(operands.command.front()));
    return operands.words;
}

Option flag_option(const char *name, char letter, bool &set) {
    return {name, letter, false, [&set](const char *) { set = true; }};
}

Option text_option(const char *name, char letter, std::optional<std::string> &value) {
    return {name, letter, true, [&value](const char *given) { value = given; }};
}

Option duration_option(const char *name, std::optional<Usec> &value) {
    return {name, 0, true, [&value, name](const char *given) {
                value = parse_duration(given);
                if (!value)
                    throw Failure(exit_usage, "--" + std::string(name) + " " + quoted(given) +
                                                  " is no duration, such as 30s, 5min or 1h");
            }};
}

} // namespace leasectl
