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

    // In a new process, before it becomes another program: as leasectl found them.
    void restore() const noexcept;

private:
    sigset_t before_ = {};
    struct sigaction pipe_before_ = {};
    int fd_;
};

// TERM, INT, HUP or QUIT: a wish that leasectl ends.
bool asks_to_end(int signal);

} // namespace leasectl
