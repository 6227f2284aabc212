#include <cmath>

#include "settings.hpp"

#include "worker.hpp"

namespace lease {

namespace {

double max_ttl_seconds = 0;
bool max_ttl_is_given = false;   // by somebody with the right to
bool max_ttl_is_refused = false; // nobody has, but the connection's options say it
char *keeper_databases = nullptr;

// Called for what may be set only.
bool check_max_ttl(double *, void **, GucSource source) {
    max_ttl_is_given |= source != PGC_S_DEFAULT;
    return true;
}

// Until the library is loaded, the server takes a connection's options (PGOPTIONS) for what holds,
// and forgets what configuration, database or role say. Refusing the option then does not bring
// that back: so that it cannot lift the limit, there is no ttl at all in such a session.
bool connection_says(const char *setting) {
    return GetConfigOption(setting, true, false) != nullptr &&
           GetConfigOptionResetString(setting) != nullptr;
}

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
    const bool said = connection_says("lease.max_ttl");
    DefineCustomRealVariable("lease.max_ttl", "Longest ttl and keep that a lease may be given.",
                             "0 sets no limit.", &max_ttl_seconds, 0, 0, 1e10, PGC_SUSET,
                             GUC_UNIT_S, check_max_ttl, nullptr, nullptr);
    max_ttl_is_refused = said && !max_ttl_is_given;
    MarkGUCPrefixReserved("lease");
}

Usec max_ttl() {
    if (max_ttl_is_refused)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("permission denied to set parameter \"lease.max_ttl\""),
                 errhint("Connect without it in the options of the connection (PGOPTIONS).")));
    if (max_ttl_seconds <= 0)
        return 0;
    return Max(1, (Usec)std::llround(max_ttl_seconds * 1000000.0)); // the least limit is one
}

} // namespace lease
