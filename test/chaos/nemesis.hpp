// What goes wrong, each in a process of its own, while the phase is chaos: it does one thing, tells
// what it was, and does the next one a random time later. (Clients are stopped and killed by their
// parent, see cast.hpp.)
#ifndef LEASE_CHAOS_NEMESIS_HPP
#define LEASE_CHAOS_NEMESIS_HPP

#include "plan.hpp"
#include "server.hpp"
#include "telling.hpp"

#include <map>
#include <string>

namespace chaos {

struct Haunt {
    const Plan &plan;
    Shared &shared;
    const Teller &teller;
    Dice dice;

    Usec between(Usec low, Usec high) { return dice.between(low, high); }
    // For some time; throws if the chaos is over by then.
    void pause(Usec low, Usec high);
    // Over a connection of its own. An error is no fault, and none of its business.
    bool run(Session &session, const std::string &sql, const std::string &fault = "") const;
};

// One thing that it does; throws std::runtime_error if the server is away or the chaos is over.
using Nemesis = void (*)(Haunt &);
const std::map<std::string, Nemesis> &nemeses();

[[noreturn]] void be_nemesis(Nemesis nemesis, Haunt &haunt);

// Connections that are cut and frozen: clients come to a socket in $PGHOST/relay.
void relay(Haunt &haunt);

// Ends what clients leave prepared, for good or not; when the chaos is over, too.
[[noreturn]] void be_heir(Haunt &haunt);

} // namespace chaos

#endif
