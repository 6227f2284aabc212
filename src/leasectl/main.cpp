// leasectl: the command-line program of the extension lease.
#include "connection.hpp"
#include "exit_status.hpp"
#include "inspect.hpp"
#include "log.hpp"
#include "output.hpp"
#include "run.hpp"
#include "signals.hpp"

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace leasectl;

constexpr const char *help =
    R"(leasectl runs commands under leases of a PostgreSQL database, and shows leases.

Usage:
  leasectl run NAME [OPTION]... [--] COMMAND [ARGUMENT]...
  leasectl ls      [--json] [--watch PERIOD]     lists the leases
  leasectl waiters [--json] [--watch PERIOD]     lists who waits for a lease or uses one
  leasectl watch NAME [--json] [--exec COMMAND]  a line for each change of the holder
  leasectl break NAME                            ends somebody else's tenure
  leasectl doctor  [--json]                      looks for settings and uses that hurt

Options of run:
  --ttl DURATION     time to live of the lease, renewed at a third of it (default: 30s)
  --wait DURATION    waits its turn for so long, or "forever" (default: 0, not at all)
  --keep DURATION    nobody gets the lease before that long after it was acquired
  --owner TEXT       the owner, unique among contenders (default: host:process:random)
  --grace DURATION   from TERM to KILL when the lease is lost (default: 2s)
  -v, --verbose      tells what happens, and figures at the end

Connection options of all commands:
  -h, --host=HOST    server host or socket directory
  -p, --port=PORT    server port
  -U, --username=USER
  -d, --dbname=DB    database name or connection string
  -w, --no-password  never asks for a password
  -W, --password     asks for a password at once

  -V, --version      -?, --help

A DURATION is a number with a unit, such as 250ms, 30s, 5min, 1h30min, 2d.

Exit status of run: that of the command; 128+n if signal n ended it; 64 wrong usage,
69 no connection, 75 not acquired, 76 lost, 126 and 127 the command cannot be run.
)";

struct Subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
};

constexpr Subcommand subcommands[] = {{"run", run_command},      {"ls", list_leases},
                                      {"waiters", list_waiters}, {"watch", watch_lease},
                                      {"break", break_lease},    {"doctor", doctor}};

bool is_one_of(const char *word, const char *one, const char *other) {
    return std::strcmp(word, one) == 0 || std::strcmp(word, other) == 0;
}

int run_subcommand(int argc, char **argv) {
    if (argc < 2)
        throw Failure(exit_usage, "a command is missing");
    if (is_one_of(argv[1], "-?", "--help")) {
        print(help);
        return exit_ok;
    }
    if (is_one_of(argv[1], "-V", "--version")) {
        print("leasectl " LEASE_VERSION "\n");
        return exit_ok;
    }
    for (const Subcommand &each : subcommands) {
        if (std::strcmp(argv[1], each.name) != 0)
            continue;
        if (argc > 2 && is_one_of(argv[2], "-?", "--help")) {
            print(help);
            return exit_ok;
        }
        return each.run(argc - 1, argv + 1);
    }
    throw Failure(exit_usage, "unknown command " + quoted(argv[1]));
}

int run_main(int argc, char **argv) {
    try {
        return run_subcommand(argc, argv);
    } catch (const Failure &failure) {
        say(failure.what());
        if (failure.status == exit_usage)
            say("try \"leasectl --help\"");
        return failure.status;
    } catch (const std::exception &error) {
        say(error.what());
        return exit_unavailable;
    }
}

// What was started without standard descriptors must not take a connection for one of them.
// Output that nobody can get still fails.
void fill_standard_descriptors() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

} // namespace

int main(int argc, char **argv) {
    fill_standard_descriptors();
    // Whoever ignores SIGCHLD never learns how a command ended.
    std::signal(SIGCHLD, SIG_DFL);
    std::setlocale(LC_CTYPE, "");
    const int status = run_main(argc, argv);
    if (status == exit_interrupted)
        end_by_interrupt();
    // A connection attempt that was given up may still be busy in a library.
    if (leasectl::anything_in_background())
        _exit(status);
    return status;
}
