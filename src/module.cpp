// What the server calls when it loads the library.

#include "durability.hpp"
#include "fence.hpp"
#include "settings.hpp"
#include "table.hpp"
#include "wake.hpp"

#pragma GCC visibility push(default)
extern "C" {
#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "lease", .version = LEASE_VERSION);
#else
PG_MODULE_MAGIC;
#endif

void _PG_init();
}
#pragma GCC visibility pop

void _PG_init() {
    lease::watch_catalog_changes();
    lease::watch_transactions();
    lease::watch_fences();
    lease::watch_commits();
    lease::define_settings();
}
