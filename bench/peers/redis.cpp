// Redis by its usual recipe: SET NX PX with a text of the owner's, compare and delete to release.
// Who waits asks again every 100 milliseconds, as the lock of the common Python client does by
// default: Redis itself has no queue for it. (A little more or less, so that they do not march in
// step.)
#include "contender.hpp"

#include <hiredis/hiredis.h>

#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

namespace peers {
namespace {

constexpr int poll_milliseconds[] = {50, 150};
constexpr const char *compare_and_delete =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";

struct FreeReply {
    void operator()(redisReply *reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

struct FreeContext {
    void operator()(redisContext *context) const { redisFree(context); }
};

class Redis : public Taker {
public:
    Redis(const char *socket_variable, std::string owner)
        : context(redisConnectUnix(environment(socket_variable).c_str())), owner(std::move(owner)) {
        if (!context || context->err)
            throw std::runtime_error(context ? context->errstr : "redis: out of memory");
        script = command("SCRIPT LOAD %s", compare_and_delete)->str;
    }

    bool take(const std::string &name) override {
        const Reply reply = command("SET %s %s NX PX 30000", name.c_str(), owner.c_str());
        return reply->type == REDIS_REPLY_STATUS;
    }

    void release(const std::string &name) override {
        const Reply reply =
            command("EVALSHA %s 1 %s %s", script.c_str(), name.c_str(), owner.c_str());
        if (reply->integer != 1)
            throw std::runtime_error("redis: the lock was not ours to release");
    }

private:
    template <typename... Arguments> Reply command(const char *format, Arguments... arguments) {
        Reply reply(static_cast<redisReply *>(redisCommand(context.get(), format, arguments...)));
        if (!reply || reply->type == REDIS_REPLY_ERROR)
            throw std::runtime_error(std::string("redis: ") +
                                     (reply ? reply->str : context->errstr));
        return reply;
    }

    std::unique_ptr<redisContext, FreeContext> context;
    std::string owner;
    std::string script;
};

class PollingRedis : public Waiter {
public:
    explicit PollingRedis(const std::string &owner)
        : redis("REDIS_SOCKET", owner), random(std::hash<std::string>()(owner)) {}

    void wait() override {
        while (!redis.take("turn"))
            std::this_thread::sleep_for(std::chrono::milliseconds(interval(random)));
    }

    void release() override { redis.release("turn"); }

private:
    Redis redis;
    std::minstd_rand random;
    std::uniform_int_distribution<int> interval{poll_milliseconds[0], poll_milliseconds[1]};
};

} // namespace

std::unique_ptr<Taker> redis_taker(const std::string &contender, const std::string &owner) {
    if (contender == "redis")
        return std::make_unique<Redis>("REDIS_SOCKET", owner);
    if (contender == "redis_always")
        return std::make_unique<Redis>("REDIS_ALWAYS_SOCKET", owner);
    return nullptr;
}

std::unique_ptr<Waiter> redis_waiter(const std::string &contender, const std::string &owner) {
    return contender == "redis" ? std::make_unique<PollingRedis>(owner) : nullptr;
}

} // namespace peers
