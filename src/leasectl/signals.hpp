// Signals as descriptors: blocked in leasectl, read one by one, and as they were in the command.
#pragma once

#include <vector>

#include <csignal>

namespace leasectl {

class Signals {
public:
    Signals();
    ~Signals();
    Signals(const Signals &) = delete;
    Signals &operator=(const Signals &) = delete;

    int fd() const { return fd_; }
    std::vector<int> take() const; // those that have come, never waits

    // TERM, INT, HUP or QUIT: a wish that leasectl ends. Not so if it was started with the signal
    // ignored, by nohup(1) or in the background of a script.
    bool asks_to_end(int signal) const;

    // In a new process, before it becomes another program: as leasectl found them.
    void restore() const noexcept;

private:
    sigset_t before_ = {};
    struct sigaction pipe_before_ = {};
    sigset_t ignored_ = {}; // at the start; blocked, they come all the same
    int fd_;
};

// What INT does to a program that has made no arrangements.
[[noreturn]] void end_by_interrupt();

} // namespace leasectl
