// The command: a process group of its own, with the terminal if leasectl has it.
#pragma once

#include "signals.hpp"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace leasectl {

class Command {
public:
    // Forks, and has the new process wait for go(): the guard has to be there first. If leasectl
    // dies before that, the command is never run.
    Command(std::vector<char *> argv, const std::vector<std::string> &environment,
            const Signals &signals);
    ~Command();
    Command(const Command &) = delete;
    Command &operator=(const Command &) = delete;

    void go();
    pid_t group() const { return pid_; }

    // Looks whether it has ended, or has been stopped.
    void look();
    bool has_ended() const { return wait_status_.has_value(); }
    // Processes of its group, zombies not counted: where nobody reaps orphans, they stay.
    bool has_group() const;
    bool was_run() const { return exec_error_ == 0; }
    int exec_error() const { return exec_error_; }
    int exit_status() const;

    // ^C at the terminal was for the whole job: the script that we are in, or our neighbours in a
    // pipe, get INT, too, if the command died of it while the terminal was its own.
    void share_interrupt() const;

    // Job control. Stopped by the terminal, or as a shell's job: leasectl stops with it.
    bool stopped_as_job() const;
    void stop_with_it(); // returns when leasectl was continued
    void resume();       // gives it the terminal if leasectl has it alone, and continues it

private:
    bool has_to_give() const; // leasectl is what the terminal talks to
    void give_terminal();
    void take_terminal();
    [[noreturn]] static void become(char *const *argv, char *const *environment, int start,
                                    int report, const Signals &signals) noexcept;

    std::string name_;
    pid_t pid_ = -1;
    int go_ = -1;
    int report_ = -1;   // errno of an exec that failed comes from here
    int terminal_ = -1; // -1: there is none
    // What stands beside us in a pipe (a pager) may need it: the command gets it when it tries to.
    bool shares_terminal_;
    bool has_terminal_ = false;
    bool interrupted_job_ = false;
    int exec_error_ = 0;
    int stop_signal_ = 0; // 0: it is not stopped
    std::optional<int> wait_status_;
};

} // namespace leasectl
