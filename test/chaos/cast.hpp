// The processes of a run. Clients that die are started again, until the end.
// Invariant: nobody stays behind, stopped or running, when it is gone.
#ifndef LEASE_CHAOS_CAST_HPP
#define LEASE_CHAOS_CAST_HPP

#include "nemesis.hpp"
#include "plan.hpp"
#include "telling.hpp"

#include <functional>
#include <map>
#include <vector>

#include <sys/types.h>

namespace chaos {

class Cast {
public:
    Cast(const Plan &plan, Shared &shared);
    ~Cast();
    Cast(const Cast &) = delete;
    Cast &operator=(const Cast &) = delete;

    // The next message, or false if none comes within a moment.
    bool next(Message &message);

    // Stops a client, or kills it, at what it has just told, now and then; and lets those go on
    // whose time has come. Gives what there is to tell of it.
    std::vector<Message> hurt(const Message &message);
    void let_go_on();

    void start_nemeses();
    void end_clients();

private:
    void start_client(int number);
    void start_nemesis(std::uint64_t part, const std::function<void(Haunt &)> &be);
    bool kill_one(int number);
    bool stop_one(int number, bool holds);
    static void end(std::vector<pid_t> &pids);

    const Plan &plan_;
    Shared &shared_;
    Dice dice_;
    int told_ = -1;
    int tell_ = -1;
    int lives_ = 0;
    std::vector<pid_t> clients_;
    std::vector<pid_t> nemeses_;
    std::map<pid_t, Usec> stopped_; // until then
};

} // namespace chaos

#endif
