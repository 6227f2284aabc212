#include "telling.hpp"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <climits>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace chaos {

Shared *Shared::map(const std::string &path) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0)
        throw std::runtime_error("cannot make " + path);
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        throw std::runtime_error("cannot map " + path);
    return static_cast<Shared *>(memory);
}

Message Message::fault(const std::string &text) {
    Message message;
    message.type = Type::fault;
    text.copy(message.text, sizeof(message.text) - 1);
    return message;
}

Message Message::crash(Span when) {
    Message message;
    message.type = Type::crash;
    message.shift = {when.from, when.to, 0};
    return message;
}

void Teller::tell(Message message) const {
    static_assert(sizeof(Message) <= PIPE_BUF);
    message.client = client_;
    if (write(pipe_, &message, sizeof(message)) != sizeof(message))
        std::_Exit(0); // the parent has gone
}

void Teller::tell(const Operation &operation) const {
    Message message;
    message.type = Message::Type::operation;
    message.operation = operation;
    tell(message);
}

void Teller::tell(const Transaction &transaction) const {
    Message message;
    message.type = Message::Type::transaction;
    message.transaction = transaction;
    tell(message);
}

void Teller::tell(const Shift &shift) const {
    Message message;
    message.type = Message::Type::shift;
    message.shift = shift;
    tell(message);
}

void Teller::tell(Message::Type type, const std::string &text) const {
    Message message = Message::fault(text);
    message.type = type;
    tell(message);
}

pid_t start(const Teller &teller, const std::function<void()> &work) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        throw std::runtime_error("cannot fork");
    if (pid > 0)
        return pid;
    // The child leaves without a farewell: what its parent has on its mind is not its own.
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        std::_Exit(1);
    try {
        work();
    } catch (const std::exception &error) {
        teller.tell(Message::Type::surprise, error.what());
    }
    std::_Exit(1);
}

void sleep_for(Usec length) {
    const timespec time = {length / second, length % second * 1000};
    nanosleep(&time, nullptr);
}

} // namespace chaos
