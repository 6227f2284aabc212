// What the processes of a run share: a page of memory, and the pipe by which they tell their parent
// what they are about to do and what came of it. So they can be stopped or killed at the worst
// moments, and the parent has the history all the same.
#ifndef LEASE_CHAOS_TELLING_HPP
#define LEASE_CHAOS_TELLING_HPP

#include "history.hpp"

#include <atomic>
#include <functional>
#include <string>

#include <sys/types.h>

namespace chaos {

enum class Phase : int { calm, chaos, healing };

// Mapped from a file; the server's clock preload (preload/clock.cpp) reads the first member.
struct Shared {
    std::atomic<Usec> clock_offset;
    std::atomic<Phase> phase;
    std::atomic<int> contenders; // so many have been there

    static Shared *map(const std::string &path);
};

// The last one about an operation or transaction is what holds. Written in one piece.
struct Message {
    enum class Type : int { operation, transaction, shift, crash, fault, surprise, leftover, id };
    Type type = Type::fault;
    int client = -1; // -1: a nemesis
    Operation operation{};
    Transaction transaction{};
    Shift shift{}; // of a crash: without an offset
    char text[200] = {};

    static Message fault(const std::string &text);
    static Message crash(Span when);
};

class Teller {
public:
    Teller(int pipe, int client) : pipe_(pipe), client_(client) {}

    void tell(const Operation &operation) const;
    void tell(const Transaction &transaction) const;
    void tell(const Shift &shift) const;
    void tell(Message message) const;
    void tell(Message::Type type, const std::string &text) const;
    int client() const { return client_; }
    void fault(const std::string &name) const { tell(Message::fault(name)); }

private:
    int pipe_;
    int client_;
};

// Runs `work` in a process of its own until it is killed; what it throws is told as a surprise.
pid_t start(const Teller &teller, const std::function<void()> &work);

// For so long.
void sleep_for(Usec length);

} // namespace chaos

#endif
