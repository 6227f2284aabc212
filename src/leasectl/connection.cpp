#include "connection.hpp"

#include "exit_status.hpp"
#include "log.hpp"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

namespace leasectl {

namespace {

constexpr const char *timeout_variable = "PGCONNECT_TIMEOUT";
bool timeout_is_ours = false;

std::atomic<int> in_background{0};

// Signals are the main thread's business. False if the system gives no thread.
bool run_in_background(std::function<void()> work) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    in_background++;
    bool started = true;
    try {
        std::thread([work = std::move(work)] {
            work();
            in_background--;
        }).detach();
    } catch (const std::system_error &) {
        in_background--;
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

struct Keywords {
    std::vector<const char *> names;
    std::vector<const char *> values;

    void add(const char *name, const std::optional<std::string> &value) {
        if (value)
            add(name, value->c_str());
    }
    void add(const char *name, const char *value) {
        names.push_back(name);
        values.push_back(value);
    }
};

PGconn *connect(const ConnectionOptions &options) {
    Keywords keywords;
    // Of two of a name the last one counts: these give way to a connection string, the
    // encoding after it does not. A peer that vanished is noticed within a minute.
    keywords.add("keepalives_idle", "30");
    keywords.add("keepalives_interval", "10");
    keywords.add("keepalives_count", "3");
    keywords.add("tcp_user_timeout", "60000");
    keywords.add("host", options.host);
    keywords.add("port", options.port);
    keywords.add("user", options.user);
    keywords.add("password", options.password);
    keywords.add("dbname", options.dbname);
    keywords.add("fallback_application_name", "leasectl");
    keywords.add("client_encoding", "UTF8");
    keywords.add(nullptr, nullptr);
    return PQconnectdbParams(keywords.names.data(), keywords.values.data(), 1);
}

void send_cancel(PGcancel *ticket) {
    if (ticket == nullptr)
        return;
    char error[256];
    PQcancel(ticket, error, sizeof error); // if it fails, the server finds out by itself
    PQfreeCancel(ticket);
}

} // namespace

std::vector<Option> connection_options(ConnectionOptions &options) {
    return {text_option("host", 'h', options.host),
            text_option("port", 'p', options.port),
            text_option("username", 'U', options.user),
            text_option("dbname", 'd', options.dbname),
            flag_option("no-password", 'w', options.never_ask),
            flag_option("password", 'W', options.ask_first)};
}

void default_connect_timeout(Usec timeout) {
    timeout_is_ours = std::getenv(timeout_variable) == nullptr;
    const Usec seconds = (timeout + second - 1) / second;
    setenv(timeout_variable, std::to_string(seconds).c_str(), 0);
}

bool is_own_variable(const std::string &assignment) {
    return timeout_is_ours && assignment.rfind(std::string(timeout_variable) + "=", 0) == 0;
}

bool ask_password(ConnectionOptions &options) {
    const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0)
        return false;
    termios before = {};
    tcgetattr(terminal, &before);
    // ^C comes as a character that ends the line: as a signal it would wait, where those are
    // blocked, or leave the terminal without an echo.
    termios silent = before;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
    silent.c_cc[VEOL] = before.c_cc[VINTR];
    tcsetattr(terminal, TCSAFLUSH, &silent);
    const char prompt[] = "Password: ";
    std::string answer;
    char next = 0;
    bool fine = write(terminal, prompt, sizeof prompt - 1) > 0;
    const auto interrupt = static_cast<char>(before.c_cc[VINTR]);
    while (fine && read(terminal, &next, 1) == 1 && next != '\n' && next != interrupt)
        answer += next;
    tcsetattr(terminal, TCSAFLUSH, &before);
    fine = write(terminal, "\n", 1) > 0 && fine;
    close(terminal);
    if (next == interrupt)
        throw Failure(ended_by(SIGINT), "no password was given");
    options.password = answer;
    return fine;
}

struct Dialing::Shared {
    std::mutex mutex;
    PGconn *connection = nullptr;
    bool given_up = false;
    int ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    ~Shared() { close(ready); }

    void finish(PGconn *made) {
        const std::lock_guard<std::mutex> guard(mutex);
        if (given_up) {
            PQfinish(made);
            return;
        }
        connection = made;
        eventfd_write(ready, 1);
    }
};

Dialing::Dialing(const ConnectionOptions &options) : shared_(std::make_shared<Shared>()) {
    if (shared_->ready < 0)
        throw std::system_error(errno, std::generic_category(), "could not create an eventfd");
    if (!run_in_background([shared = shared_, options] { shared->finish(connect(options)); }))
        shared_->finish(connect(options));
}

Dialing::~Dialing() {
    const std::lock_guard<std::mutex> guard(shared_->mutex);
    shared_->given_up = true;
    if (shared_->connection != nullptr)
        PQfinish(shared_->connection);
}

int Dialing::fd() const {
    return shared_->ready;
}

PGconn *Dialing::result() {
    const std::lock_guard<std::mutex> guard(shared_->mutex);
    PGconn *made = shared_->connection;
    shared_->connection = nullptr;
    return made;
}

void abandon(PGconn *connection) {
    const bool started = run_in_background([connection] {
        send_cancel(PQgetCancel(connection));
        PQfinish(connection);
    });
    if (!started)
        PQfinish(connection);
}

void cancel(PGconn *connection) {
    PGcancel *ticket = PQgetCancel(connection);
    if (ticket != nullptr && !run_in_background([ticket] { send_cancel(ticket); }))
        PQfreeCancel(ticket);
}

bool anything_in_background() {
    return in_background > 0;
}

} // namespace leasectl
