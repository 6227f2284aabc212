// The clients of `make bench-peers` that no packaged tool is: each has a connection of its own
// and one call under way at most, as pgbench's clients have. Addresses come from the environment.
// Invariant: a call that did not do what it is measured for throws.
#ifndef LEASE_PEERS_CONTENDER_HPP
#define LEASE_PEERS_CONTENDER_HPP

#include <memory>
#include <string>

namespace peers {

// Takes a lock, or is told no.
class Taker {
public:
    virtual ~Taker() = default;
    virtual bool take(const std::string &name) = 0;
    virtual void release(const std::string &name) = 0;
};

// Waits for its turn at the one lock that all waiters share.
class Waiter {
public:
    virtual ~Waiter() = default;
    virtual void wait() = 0;
    virtual void release() = 0;
};

// The owner is a text of its own for each client. nullptr: not one of this file's contenders.
std::unique_ptr<Taker> postgres_taker(const std::string &contender, const std::string &owner);
std::unique_ptr<Taker> redis_taker(const std::string &contender, const std::string &owner);
std::unique_ptr<Taker> etcd_taker(const std::string &contender, const std::string &owner);
std::unique_ptr<Waiter> postgres_waiter(const std::string &contender, const std::string &owner);
std::unique_ptr<Waiter> redis_waiter(const std::string &contender, const std::string &owner);
std::unique_ptr<Waiter> etcd_waiter(const std::string &contender, const std::string &owner);

// A variable of the environment that has to be there.
std::string environment(const char *variable);

} // namespace peers

#endif
