// The exit statuses of leasectl's own, those of sysexits.h where one fits. leasectl.1.scd lists
// them.
#pragma once

#include <stdexcept>
#include <string>

#include <csignal>

namespace leasectl {

enum ExitStatus : int {
    exit_ok = 0,
    exit_no = 1,            // break, doctor: the answer is no
    exit_usage = 64,        // the command line makes no sense
    exit_unavailable = 69,  // no server that could answer
    exit_output = 74,       // the output could not be written
    exit_not_acquired = 75, // somebody else has the lease
    exit_lost = 76,         // the lease was lost while the command ran
    exit_not_executable = 126,
    exit_not_found = 127,
    exit_signal = 128,      // plus the number of the signal
    exit_interrupted = 256, // no status: INT ends leasectl itself
};

// Where that signal ended the command or the wait. A shell takes a status after ^C for an answer,
// and goes on with its script; of a program that INT has ended it knows better.
constexpr int ended_by(int signal) {
    return signal == SIGINT ? exit_interrupted : exit_signal + signal;
}

// Ends leasectl with that status and message.
struct Failure : std::runtime_error {
    Failure(int its_status, const std::string &message)
        : std::runtime_error(message), status(its_status) {}
    int status;
};

} // namespace leasectl
