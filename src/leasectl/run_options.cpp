// The command line of leasectl run.
#include "run.hpp"

#include "duration.hpp"
#include "exit_status.hpp"
#include "log.hpp"

#include <algorithm>
#include <cstdio>

#include <sys/random.h>
#include <unistd.h>

namespace leasectl {

namespace {

constexpr Usec shortest_ttl = second;

// Unique for each run: host, process, and chance for hosts of one name and processes of one number.
std::string default_owner() {
    char host[129] = "";
    gethostname(host, sizeof host - 1);
    unsigned long long chance = 0;
    if (getrandom(&chance, sizeof chance, 0) != static_cast<ssize_t>(sizeof chance))
        throw Failure(exit_unavailable, "the system gives no random number for the owner");
    char owner[192];
    std::snprintf(owner, sizeof owner, "%s:%d:%016llx", host, static_cast<int>(getpid()), chance);
    return owner;
}

Option wait_option(Usec &wait) {
    return {"wait", 0, true, [&wait](const char *given) {
                const std::optional<Usec> parsed = parse_duration(given);
                if (!parsed && std::string(given) != "forever")
                    throw Failure(exit_usage, "--wait " + quoted(given) +
                                                  " is neither a duration nor \"forever\"");
                wait = parsed.value_or(never);
            }};
}

void check(const RunOptions &options) {
    if (options.command.size() < 2)
        throw Failure(exit_usage, "the command to run is missing");
    if (options.ttl < shortest_ttl)
        throw Failure(exit_usage, "--ttl is " + format_duration(options.ttl) + ", and has to be " +
                                      format_duration(shortest_ttl) + " at least");
    if (options.grace > options.ttl / 2)
        throw Failure(exit_usage, "--grace is " + format_duration(options.grace) +
                                      ", more than half of the TTL of " +
                                      format_duration(options.ttl));
}

} // namespace

RunOptions read_run_options(int argc, char **argv) {
    RunOptions options;
    std::optional<Usec> ttl;
    std::optional<Usec> grace;
    std::optional<std::string> owner;
    std::vector<Option> known = connection_options(options.connection);
    known.push_back(duration_option("ttl", ttl));
    known.push_back(wait_option(options.wait));
    known.push_back(duration_option("keep", options.keep));
    known.push_back(duration_option("grace", grace));
    known.push_back(text_option("owner", 0, owner));
    known.push_back(flag_option("verbose", 'v', options.verbose));
    Operands operands = parse_options(argc, argv, known, 1);
    if (operands.words.empty())
        throw Failure(exit_usage, "the name of a lease is missing");
    options.name = operands.words.front();
    options.command = operands.command;
    options.ttl = ttl.value_or(options.ttl);
    options.grace = grace.value_or(std::min(options.grace, options.ttl / 4));
    options.owner = owner ? *owner : default_owner();
    check(options);
    default_connect_timeout(std::clamp(options.ttl / 6, 2 * second, 10 * second));
    if (options.connection.ask_first)
        ask_password(options.connection);
    return options;
}

} // namespace leasectl
