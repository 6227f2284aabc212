#include "signals.hpp"

#include "exit_status.hpp"

#include <cerrno>
#include <system_error>

#include <sys/signalfd.h>
#include <unistd.h>

namespace leasectl {

namespace {

// TTOU is there so that the terminal can be given to the command from the background.
constexpr int caught[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
                          SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD, SIGTTOU};

bool is_ignored(int signal) {
    struct sigaction found = {};
    return sigaction(signal, nullptr, &found) == 0 && found.sa_handler == SIG_IGN;
}

} // namespace

Signals::Signals() {
    sigset_t mask;
    sigemptyset(&mask);
    sigemptyset(&ignored_);
    for (const int each : caught) {
        sigaddset(&mask, each);
        if (is_ignored(each))
            sigaddset(&ignored_, each);
    }
    sigprocmask(SIG_BLOCK, &mask, &before_);
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &pipe_before_);
    fd_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0)
        throw std::system_error(errno, std::generic_category(), "could not create a signalfd");
}

Signals::~Signals() {
    close(fd_);
}

std::vector<int> Signals::take() const {
    std::vector<int> taken;
    signalfd_siginfo info = {};
    while (read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        taken.push_back(static_cast<int>(info.ssi_signo));
    return taken;
}

void Signals::restore() const noexcept {
    sigaction(SIGPIPE, &pipe_before_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool Signals::asks_to_end(int signal) const {
    const bool wish =
        signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
    return wish && sigismember(&ignored_, signal) == 0;
}

void end_by_interrupt() {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
    _exit(exit_signal + SIGINT); // the first process of a container cannot end so
}

} // namespace leasectl
