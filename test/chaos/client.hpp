// A client: a process that does all that one can do to leases, in random order, and goes on
// whatever happens to it.
#ifndef LEASE_CHAOS_CLIENT_HPP
#define LEASE_CHAOS_CLIENT_HPP

#include "plan.hpp"
#include "telling.hpp"

namespace chaos {

// The extension, made anew, and the tables that the clients write.
void make_tables(const Plan &plan);
std::vector<Write> read_writes(const Plan &plan);

// Does not return. `life` tells the lives of one client apart: it is started again when it died.
[[noreturn]] void be_client(const Plan &plan, Shared &shared, const Teller &teller, int life);

} // namespace chaos

#endif
