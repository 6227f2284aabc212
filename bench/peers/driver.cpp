// driver PART CONTENDER CLIENTS SECONDS: what clients of a peer achieve, each in a thread.
//   tries      attempts a second at one lock that somebody else holds
//   cycles     acquire + release a second, each client at a lock of its own
//   handover   one lock, and all others wait: from the begin of a release to the next one's grant,
//              median and 99th percentile in microseconds
#include "contender.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace peers {

std::string environment(const char *variable) {
    const char *value = std::getenv(variable);
    if (!value)
        throw std::runtime_error(std::string(variable) + " is not set");
    return value;
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr const char *contested = "driven"; // the other clients of the bench have a lock of theirs
constexpr auto warm_up = std::chrono::milliseconds(300);
constexpr auto hold = std::chrono::milliseconds(2); // long enough for whoever had it to queue again

struct Arguments {
    std::string contender;
    int clients;
    std::chrono::duration<double> time;
};

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "driver: %s\n", what);
    std::_Exit(1);
}

template <typename Client>
std::unique_ptr<Client> require(std::unique_ptr<Client> client, const std::string &contender) {
    if (!client)
        throw std::runtime_error("there is no contender \"" + contender + "\" here");
    return client;
}

std::unique_ptr<Taker> taker(const std::string &contender, const std::string &owner) {
    auto client = postgres_taker(contender, owner);
    if (!client)
        client = redis_taker(contender, owner);
    return require(client ? std::move(client) : etcd_taker(contender, owner), contender);
}

std::unique_ptr<Waiter> waiter(const std::string &contender, const std::string &owner) {
    auto client = postgres_waiter(contender, owner);
    if (!client)
        client = redis_waiter(contender, owner);
    return require(client ? std::move(client) : etcd_waiter(contender, owner), contender);
}

// Runs body in a thread for each client. An error of one ends all.
template <typename Body> std::vector<std::thread> start(int clients, Body body) {
    std::vector<std::thread> threads;
    for (int client = 0; client < clients; client++)
        threads.emplace_back([client, body] {
            try {
                body(client);
            } catch (const std::exception &error) {
                fail(error.what());
            }
        });
    return threads;
}

std::string owner_of(int client) {
    return "bench " + std::to_string(client);
}

// Calls step over and over in every client; calls a second, once all are warm.
void print_rate(const Arguments &arguments, const std::function<void(Taker &, int)> &step) {
    std::vector<std::unique_ptr<Taker>> takers;
    for (int client = 0; client < arguments.clients; client++)
        takers.push_back(taker(arguments.contender, owner_of(client)));
    std::atomic<bool> counting = false;
    std::atomic<bool> over = false;
    std::atomic<long> sum = 0;
    auto threads = start(arguments.clients, [&](int client) {
        long count = 0;
        while (!over) {
            step(*takers[client], client);
            count += counting ? 1 : 0;
        }
        sum += count;
    });
    std::this_thread::sleep_for(warm_up);
    const auto began = Clock::now();
    counting = true;
    std::this_thread::sleep_for(arguments.time);
    over = true;
    const std::chrono::duration<double> took = Clock::now() - began;
    for (std::thread &thread : threads)
        thread.join();
    std::printf("%.1f\n", static_cast<double>(sum) / took.count());
}

void tries(const Arguments &arguments) {
    const auto holder = taker(arguments.contender, "holder");
    if (!holder->take(contested))
        throw std::runtime_error("somebody else holds the lock");
    print_rate(arguments, [](Taker &client, int) {
        if (client.take(contested))
            throw std::runtime_error("a try got what is held");
    });
    holder->release(contested);
}

void cycles(const Arguments &arguments) {
    print_rate(arguments, [](Taker &client, int number) {
        const std::string name = "job " + std::to_string(number);
        if (!client.take(name))
            throw std::runtime_error("a lock of one's own was not to be had");
        client.release(name);
    });
}

// The turns of all clients, and how long each took to begin.
class Turns {
public:
    // Called by who got its turn; the first one waited for nobody.
    void begin() {
        const auto now = Clock::now();
        const std::lock_guard<std::mutex> guard(mutex);
        if (count++ > 0)
            latencies.push_back(std::chrono::duration<double, std::micro>(now - released).count());
        changed.notify_all();
    }

    // Called right before the release. Returns which turn it was.
    long end() {
        const std::lock_guard<std::mutex> guard(mutex);
        released = Clock::now();
        return count;
    }

    // Else, where there is no queue, who releases would get it again and again.
    void await_next(long turn, const std::atomic<bool> &over) {
        std::unique_lock<std::mutex> guard(mutex);
        while (count == turn && !over)
            changed.wait_for(guard, std::chrono::milliseconds(100));
    }

    // The first turns, when not all wait yet, do not count.
    void print(std::size_t clients) {
        const std::lock_guard<std::mutex> guard(mutex);
        latencies.erase(latencies.begin(), latencies.begin() + std::min(clients, latencies.size()));
        if (latencies.empty())
            throw std::runtime_error("there were no hand-overs");
        std::sort(latencies.begin(), latencies.end());
        std::printf("%.1f %.1f\n", latencies[latencies.size() / 2],
                    latencies[latencies.size() * 99 / 100]);
    }

private:
    std::mutex mutex;
    std::condition_variable changed;
    Clock::time_point released;
    long count = 0;
    std::vector<double> latencies;
};

void handover(const Arguments &arguments) {
    std::vector<std::unique_ptr<Waiter>> waiters;
    for (int client = 0; client < arguments.clients; client++)
        waiters.push_back(waiter(arguments.contender, owner_of(client)));
    Turns turns;
    std::atomic<bool> over = false;
    auto threads = start(arguments.clients, [&](int client) {
        while (!over) {
            waiters[client]->wait();
            turns.begin();
            std::this_thread::sleep_for(hold);
            const long turn = turns.end();
            waiters[client]->release();
            turns.await_next(turn, over);
        }
    });
    std::this_thread::sleep_for(warm_up + arguments.time);
    over = true; // who waits gets its turn yet, and leaves
    for (std::thread &thread : threads)
        thread.join();
    turns.print(waiters.size());
}

void run(int argc, char **argv) {
    if (argc != 5)
        throw std::runtime_error("usage: driver tries|cycles|handover CONTENDER CLIENTS SECONDS");
    const std::string part = argv[1];
    const Arguments arguments = {argv[2], std::stoi(argv[3]),
                                 std::chrono::duration<double>(std::stod(argv[4]))};
    if (part == "tries")
        tries(arguments);
    else if (part == "cycles")
        cycles(arguments);
    else if (part == "handover")
        handover(arguments);
    else
        throw std::runtime_error("there is no part \"" + part + "\"");
}

} // namespace
} // namespace peers

int main(int argc, char **argv) {
    try {
        peers::run(argc, argv);
    } catch (const std::exception &error) {
        peers::fail(error.what());
    }
}
