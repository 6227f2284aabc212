// A relay between clients and the server, on a socket of its own, that cuts and freezes what it
// carries. A frozen connection's bytes are late, and may come when nobody waits for them any more.
#include "nemesis.hpp"

#include <cstdlib>
#include <cstring>
#include <list>
#include <stdexcept>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace chaos {

namespace {

// Each end is read only when what came before has been written to the other one.
struct Connection {
    int ends[2]; // the client's, the server's
    Usec frozen_until = 0;

    bool carry(int from) const {
        char bytes[16384];
        const ssize_t got = read(ends[from], bytes, sizeof(bytes));
        for (ssize_t done = 0; done < got;) {
            const ssize_t put = write(ends[1 - from], bytes + done, got - done);
            if (put <= 0)
                return false;
            done += put;
        }
        return got > 0;
    }
    void cut() const {
        close(ends[0]);
        close(ends[1]);
    }
};

sockaddr_un address_in(const std::string &directory) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = directory + "/.s.PGSQL." + std::getenv("PGPORT");
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
}

class Relay {
public:
    explicit Relay(Haunt &haunt) : haunt_(haunt) {
        const std::string directory = std::string(std::getenv("PGHOST")) + "/relay";
        mkdir(directory.c_str(), 0700);
        const sockaddr_un address = address_in(directory);
        unlink(address.sun_path);
        listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(listener_, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 ||
            listen(listener_, 20) != 0)
            throw std::logic_error("no socket for the relay");
    }

    [[noreturn]] void carry_on() {
        Usec next = 0;
        for (;;) {
            carry_all();
            if (haunt_.shared.phase != Phase::chaos || now() < next)
                continue;
            if (next != 0 && !connections_.empty())
                hurt_one();
            next = now() + haunt_.between(0, 600 * millisecond);
        }
    }

private:
    void hurt_one() {
        auto one = connections_.begin();
        std::advance(one, haunt_.between(0, static_cast<Usec>(connections_.size()) - 1));
        if (haunt_.dice.one_in(2)) {
            one->cut();
            connections_.erase(one);
            haunt_.teller.fault("connection cut");
        } else {
            one->frozen_until = now() + haunt_.between(0, 3 * second);
            haunt_.teller.fault("connection frozen");
        }
    }

    void carry_all() {
        std::vector<pollfd> polls = {{listener_, POLLIN, 0}};
        for (const Connection &one : connections_)
            for (const int end : one.ends)
                polls.push_back({one.frozen_until > now() ? -1 : end, POLLIN, 0});
        if (poll(polls.data(), polls.size(), 20) <= 0)
            return;
        std::size_t at = 1;
        for (auto one = connections_.begin(); one != connections_.end(); at += 2) {
            const bool stands = (polls[at].revents == 0 || one->carry(0)) &&
                                (polls[at + 1].revents == 0 || one->carry(1));
            if (stands) {
                ++one;
                continue;
            }
            one->cut();
            one = connections_.erase(one);
        }
        if (polls[0].revents != 0)
            accept_one();
    }

    void accept_one() {
        const int client = accept(listener_, nullptr, nullptr);
        const int server = socket(AF_UNIX, SOCK_STREAM, 0);
        const sockaddr_un address = address_in(std::getenv("PGHOST"));
        const Connection one = {{client, server}};
        if (connect(server, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0)
            connections_.push_back(one);
        else
            one.cut();
    }

    Haunt &haunt_;
    int listener_ = -1;
    std::list<Connection> connections_;
};

} // namespace

void relay(Haunt &haunt) {
    Relay(haunt).carry_on();
}

} // namespace chaos
