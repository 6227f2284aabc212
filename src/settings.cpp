#include <cmath>

#include "settings.hpp"

#include "worker.hpp"

namespace lease {

namespace {

double max_ttl_seconds = 0;
char *keeper_databases = nullptr;

} // namespace

void define_settings() {
    // Read when the server starts, and only if it preloads the library. (Else the server would not
    // let us define it as what it is.)
    const bool preloaded = process_shared_preload_libraries_in_progress;
    DefineCustomStringVariable(
        "lease.keeper_databases", "Databases whose lease keeper starts with the server.",
        "A list of names; the library has to be preloaded. Elsewhere the keeper starts when the "
        "first lease is attached.",
        &keeper_databases, "", preloaded ? PGC_POSTMASTER : PGC_SIGHUP, GUC_LIST_INPUT, nullptr,
        nullptr, nullptr);
    if (preloaded)
        register_boot_keepers(keeper_databases);
    DefineCustomRealVariable("lease.max_ttl", "Longest ttl and keep that a lease may be given.",
                             "0 sets no limit.", &max_ttl_seconds, 0, 0, 1e10, PGC_SUSET,
                             GUC_UNIT_S, nullptr, nullptr, nullptr);
    MarkGUCPrefixReserved("lease");
}

Usec max_ttl() {
    if (max_ttl_seconds <= 0)
        return 0;
    return Max(1, (Usec)std::llround(max_ttl_seconds * 1000000.0)); // the least limit is one
}

} // namespace lease
