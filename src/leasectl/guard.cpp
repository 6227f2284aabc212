#include "guard.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leasectl {

bool group_exists(pid_t group) noexcept {
    return kill(-group, 0) == 0 || errno == EPERM;
}

bool signal_group(pid_t group, int signal) noexcept {
    const bool sent = kill(-group, signal) == 0 || errno == EPERM;
    if (signal != SIGKILL)
        kill(-group, SIGCONT); // who is stopped cannot heed it
    return sent;
}

namespace {

enum class Kind : char { deadline, only_kill };

struct Message {
    Kind kind;
    Deadline deadline;
};

// leasectl sends TERM at the same moment; the guard's is for when it did not.
constexpr Usec courtesy = 100 * millisecond;
constexpr Usec pace = 10 * millisecond;
// Zombies that nobody reaps look like a group. That long after KILL nothing else is left of it.
constexpr Usec patience = 10 * second;

// Runs in the guard, which may have been forked beside threads: system calls only.
class Watch {
public:
    Watch(int fd, int timer, pid_t group, Deadline deadline, Usec grace) noexcept
        : fd_(fd), timer_(timer), group_(group), deadline_(deadline), grace_(grace) {}

    [[noreturn]] void run() noexcept {
        for (;;) {
            act(boot_now());
            pollfd fds[] = {{orphaned_ ? -1 : fd_, POLLIN, 0}, {timer_, POLLIN, 0}};
            arm_timer(timer_, next());
            poll(fds, 2, -1);
            if (!orphaned_)
                listen();
        }
    }

private:
    void act(Usec now) noexcept {
        if (orphaned_ && (!group_exists(group_) || now >= deadline_.kill_at + patience))
            _exit(0);
        if (!termed_ && now >= term_time()) {
            termed_ = true;
            tell();
            signal_group(group_, SIGTERM);
        }
        if (now >= deadline_.kill_at && (!killed_ || orphaned_)) {
            if (!killed_)
                tell();
            killed_ = true;
            signal_group(group_, SIGKILL);
        }
    }

    Usec term_time() const noexcept {
        if (orphaned_)
            return deadline_.term_at;
        return deadline_.term_at + std::min(courtesy, (deadline_.kill_at - deadline_.term_at) / 4);
    }

    Usec next() const noexcept {
        if (orphaned_)
            return boot_now() + pace;
        if (killed_)
            return never;
        return termed_ ? deadline_.kill_at : std::min(term_time(), deadline_.kill_at);
    }

    void listen() noexcept {
        Message message = {};
        for (;;) {
            const ssize_t got = recv(fd_, &message, sizeof message, MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                return;
            if (got != static_cast<ssize_t>(sizeof message)) {
                be_alone();
                return;
            }
            heed(message);
        }
    }

    void heed(const Message &message) noexcept {
        if (message.kind == Kind::only_kill)
            termed_ = true;
        // After a TERM of ours the command is not what it was: more time does not help it.
        if (message.kind == Kind::only_kill || !termed_)
            deadline_ = message.deadline;
    }

    // leasectl is gone, so nobody renews: the command ends now, and in good order if it can.
    void be_alone() noexcept {
        const Usec now = boot_now();
        orphaned_ = true;
        deadline_.term_at = std::min(deadline_.term_at, now);
        deadline_.kill_at = std::min(deadline_.kill_at, now + grace_);
        termed_ = false;
    }

    void tell() const noexcept {
        const char byte = 'x';
        if (!orphaned_)
            send(fd_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }

    int fd_;
    int timer_;
    pid_t group_;
    Deadline deadline_;
    Usec grace_;
    bool termed_ = false;
    bool killed_ = false;
    bool orphaned_ = false;
};

// Keeps nothing of leasectl's: neither its connections nor its output, which somebody may wait for
// the end of.
void close_all_but(int kept, int also) noexcept {
    const int low = std::min(kept, also);
    const int high = std::max(kept, also);
    // cppcheck-suppress ConfigurationNotChecked
#ifdef SYS_close_range
    if (syscall(SYS_close_range, high + 1, ~0U, 0) == 0) {
        for (int fd = 0; fd < high; fd++)
            if (fd != low)
                close(fd);
        return;
    }
#endif
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 0; fd < (most > 0 ? most : 65536); fd++)
        if (fd != low && fd != high)
            close(fd);
}

[[noreturn]] void be_guard(int fd, int timer, pid_t group, Deadline deadline, Usec grace) noexcept {
    setsid();
    prctl(PR_SET_NAME, "leasectl-guard");
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    close_all_but(fd, timer);
    if (chdir("/") != 0)
        _exit(1);
    Watch(fd, timer, group, deadline, grace).run();
}

} // namespace

Guard::Guard(pid_t group, Deadline deadline, Usec grace) {
    int ends[2] = {};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::system_error(errno, std::generic_category(), "could not create a socket");
    const int timer = make_timer();
    pid_ = fork();
    if (pid_ == 0)
        be_guard(ends[1], timer, group, deadline, grace);
    const int error = errno;
    close(ends[1]);
    close(timer);
    fd_ = ends[0];
    if (pid_ < 0) {
        close(fd_);
        throw std::system_error(error, std::generic_category(), "could not start the guard");
    }
}

Guard::~Guard() {
    if (is_alive()) {
        kill(pid_, SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    close(fd_);
}

bool Guard::is_alive() noexcept {
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_)
        pid_ = -1;
    return pid_ > 0;
}

void Guard::extend(Deadline deadline) const noexcept {
    const Message message{Kind::deadline, deadline};
    send(fd_, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Guard::only_kill(Deadline deadline) const noexcept {
    const Message message{Kind::only_kill, deadline};
    send(fd_, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool Guard::has_acted() noexcept {
    char byte = 0;
    if (recv(fd_, &byte, 1, MSG_DONTWAIT) > 0)
        acted_ = true;
    return acted_;
}

} // namespace leasectl
