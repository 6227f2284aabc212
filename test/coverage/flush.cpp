// Part of leasectl in a build that counts (COVERAGE=1): its processes wait in poll() or
// ppoll(), where many of them are killed, and end by _exit() or by a signal to themselves; gcov
// writes its counts only at exit(). So they are written there, too.
#include <cerrno>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void __gcov_dump();
void __gcov_reset();

static void write_counts() {
    const int error = errno;
    __gcov_dump();
    __gcov_reset(); // what is written is added to what the file has
    errno = error;
}

int ppoll(pollfd *fds, nfds_t count, const timespec *timeout, const sigset_t *signals) {
    write_counts();
    timespec left = {};
    if (timeout != nullptr)
        left = *timeout;
    return static_cast<int>(
        syscall(SYS_ppoll, fds, count, timeout != nullptr ? &left : nullptr, signals, _NSIG / 8));
}

int poll(pollfd *fds, nfds_t count, int milliseconds) {
    timespec timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    return ppoll(fds, count, milliseconds < 0 ? nullptr : &timeout, nullptr);
}

int kill(pid_t whom, int signal) noexcept {
    if (whom == getpid())
        write_counts();
    return static_cast<int>(syscall(SYS_kill, whom, signal));
}

void _exit(int status) {
    write_counts();
    for (;;)
        syscall(SYS_exit_group, status);
}
}
