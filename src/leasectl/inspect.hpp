// The commands that look at leases, and the one that breaks them. Each returns its exit status.
#pragma once

namespace leasectl {

int list_leases(int argc, char **argv);
int list_waiters(int argc, char **argv);
int break_lease(int argc, char **argv);
int watch_lease(int argc, char **argv);
int doctor(int argc, char **argv);

} // namespace leasectl
