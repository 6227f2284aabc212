#include "settings.hpp"

#include "server.hpp"

namespace lease {

namespace {

double max_ttl_seconds = 0;

} // namespace

void define_settings() {
    DefineCustomRealVariable("lease.max_ttl", "Longest ttl and keep that a lease may be given.",
                             "0 sets no limit.", &max_ttl_seconds, 0, 0, 1e10, PGC_SUSET,
                             GUC_UNIT_S, nullptr, nullptr, nullptr);
    MarkGUCPrefixReserved("lease");
}

Usec max_ttl() {
    return (Usec)(max_ttl_seconds * 1000000.0);
}

} // namespace lease
