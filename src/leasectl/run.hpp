// leasectl run: a command under a lease.
#pragma once

#include "connection.hpp"

#include <string>
#include <vector>

namespace leasectl {

struct RunOptions {
    ConnectionOptions connection;
    std::string name;
    std::string owner;
    Usec ttl = 30 * second;
    Usec wait = 0; // never: for ever
    std::optional<Usec> keep;
    Usec grace = 2 * second;
    bool verbose = false;
    std::vector<char *> command;
};

RunOptions read_run_options(int argc, char **argv); // throws Failure

// Returns the exit status.
int run_command(int argc, char **argv);

} // namespace leasectl
