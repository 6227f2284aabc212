#include "command.hpp"

#include "environment.hpp"
#include "exit_status.hpp"
#include "guard.hpp"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leasectl {

namespace {

void make_pipe(int (&ends)[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "could not create a pipe");
}

bool is_pipe(int fd) {
    struct stat status = {};
    return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

// exec says "permission denied" also of a name that is nowhere, if it may not look into all of
// PATH.
bool is_in_path(const std::string &name) {
    const char *variable = std::getenv("PATH");
    std::string path = variable != nullptr ? variable : "";
    path += ":";
    std::size_t from = 0;
    for (std::size_t to = path.find(':'); to != std::string::npos; to = path.find(':', from)) {
        if (access((path.substr(from, to - from) + "/" + name).c_str(), F_OK) == 0)
            return true;
        from = to + 1;
    }
    return false;
}

// By /proc/PID/stat, whose second field, in parentheses, may hold anything.
bool is_live_member(const std::string &pid, pid_t group) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    char state = 0;
    pid_t parent = 0;
    pid_t its_group = 0;
    return fields >> state >> parent >> its_group && its_group == group && state != 'Z' &&
           state != 'X';
}

} // namespace

Command::Command(std::vector<char *> argv, const std::vector<std::string> &environment,
                 const Signals &signals)
    : name_(argv.front()), shares_terminal_(is_pipe(STDIN_FILENO) || is_pipe(STDOUT_FILENO)) {
    int start[2] = {};
    int report[2] = {};
    make_pipe(start);
    make_pipe(report);
    const std::vector<char *> variables = environment_with(environment);
    terminal_ = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    pid_ = fork();
    if (pid_ == 0) {
        close(start[1]);
        become(argv.data(), variables.data(), start[0], report[1], signals);
    }
    const int error = errno;
    close(start[0]);
    close(report[1]);
    go_ = start[1];
    report_ = report[0];
    if (pid_ < 0)
        throw std::system_error(error, std::generic_category(), "could not start a process");
    setpgid(pid_, pid_); // whichever of the two is first
}

Command::~Command() {
    take_terminal();
    close(go_);
    close(report_);
    close(terminal_);
}

// In the new process: between fork and exec, system calls only.
void Command::become(char *const *argv, char *const *environment, int start, int report,
                     const Signals &signals) noexcept {
    setpgid(0, 0);
    char byte = 0;
    if (read(start, &byte, 1) != 1)
        _exit(0);
    signals.restore();
    execvpe(argv[0], argv, environment);
    const int error = errno;
    if (write(report, &error, sizeof error) < 0)
        _exit(exit_not_found);
    _exit(error == ENOENT ? exit_not_found : exit_not_executable);
}

void Command::go() {
    if (!shares_terminal_)
        give_terminal();
    const char byte = 'g';
    if (write(go_, &byte, 1) != 1)
        return; // it is dead already, which shows like any other end
}

void Command::look() {
    siginfo_t info = {};
    if (has_ended() || waitid(P_PID, static_cast<id_t>(pid_), &info,
                              WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0)
        return;
    if (info.si_pid == 0)
        return;
    stop_signal_ = info.si_code == CLD_STOPPED ? info.si_status : 0;
    if (info.si_code == CLD_EXITED)
        wait_status_ = info.si_status;
    else if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
        wait_status_ = ended_by(info.si_status);
    if (!has_ended())
        return;
    interrupted_job_ = has_terminal_ && wait_status_ == exit_interrupted;
    take_terminal();
    int error = 0;
    if (read(report_, &error, sizeof error) == static_cast<ssize_t>(sizeof error))
        exec_error_ = error;
    if (exec_error_ == EACCES && name_.find('/') == std::string::npos && !is_in_path(name_)) {
        exec_error_ = ENOENT;
        wait_status_ = exit_not_found;
    }
}

bool Command::has_group() const {
    if (!group_exists(pid_))
        return false;
    DIR *processes = opendir("/proc");
    if (processes == nullptr)
        return true;
    bool found = false;
    while (const dirent *each = readdir(processes))
        found = found || (std::isdigit(static_cast<unsigned char>(each->d_name[0])) != 0 &&
                          is_live_member(each->d_name, pid_));
    closedir(processes);
    return found;
}

void Command::share_interrupt() const {
    if (interrupted_job_)
        kill(0, SIGINT);
}

int Command::exit_status() const {
    return wait_status_.value_or(exit_ok);
}

bool Command::has_to_give() const {
    return terminal_ >= 0 && tcgetpgrp(terminal_) == getpgrp();
}

void Command::give_terminal() {
    if (has_to_give())
        has_terminal_ = tcsetpgrp(terminal_, pid_) == 0;
}

void Command::take_terminal() {
    if (has_terminal_ && tcgetpgrp(terminal_) == pid_)
        tcsetpgrp(terminal_, getpgrp());
    has_terminal_ = false;
}

bool Command::stopped_as_job() const {
    return stop_signal_ == SIGTSTP || stop_signal_ == SIGTTIN || stop_signal_ == SIGTTOU ||
           (stop_signal_ != 0 && has_terminal_);
}

void Command::stop_with_it() {
    const bool wants_terminal = stop_signal_ == SIGTTIN || stop_signal_ == SIGTTOU;
    const bool whole_job = has_terminal_;
    stop_signal_ = 0;
    if (wants_terminal && has_to_give()) { // or a shell has put us in the foreground meanwhile
        shares_terminal_ = false;
        resume();
        return;
    }
    take_terminal();
    // With the terminal, those before and behind us in a pipe have to stop, too.
    kill(whole_job ? 0 : getpid(), SIGSTOP);
}

void Command::resume() {
    if (!shares_terminal_)
        give_terminal();
    kill(-pid_, SIGCONT);
}

} // namespace leasectl
