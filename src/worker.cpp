#include "worker.hpp"

#include "gate.hpp"

extern "C" {
#include "postmaster/bgworker.h"
#include "utils/varlena.h"
}

namespace lease {

namespace {

static_assert(sizeof(Orders) <= BGW_EXTRALEN);

constexpr int most_starts = 3;     // until one takes office
constexpr int most_patience = 500; // milliseconds until a slot is free: parallel queries take some

BackgroundWorker keeper_worker(Oid database, const Orders &orders) {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    strlcpy(worker.bgw_library_name, "$libdir/lease", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, "lease_keeper_main", sizeof(worker.bgw_function_name));
    strlcpy(worker.bgw_type, "lease keeper", sizeof(worker.bgw_type));
    snprintf(worker.bgw_name, sizeof(worker.bgw_name), "lease keeper of database %s",
             orders.database[0] != '\0' ? orders.database : psprintf("%u", database));
    memcpy(worker.bgw_extra, &orders, sizeof(orders));
    return worker;
}

BackgroundWorkerHandle *register_keeper(Oid function) {
    const Orders orders = {function, ""};
    BackgroundWorker worker = keeper_worker(MyDatabaseId, orders);
    worker.bgw_notify_pid = MyProcPid;
    BackgroundWorkerHandle *handle = nullptr;
    for (int waited = 0; !RegisterDynamicBackgroundWorker(&worker, &handle); waited += 10) {
        CHECK_FOR_INTERRUPTS();
        if (waited >= most_patience)
            ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                            errmsg("could not start the keeper of attached leases"),
                            errdetail("No background worker slot is free."),
                            errhint("Raise \"max_worker_processes\".")));
        pg_usleep(10000);
    }
    return handle;
}

// Waits until some keeper is in office: this one, or another that was started beside it. False:
// this one has gone, and there is none.
bool wait_until_kept(const LOCKTAG &keeper, BackgroundWorkerHandle *handle) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        pid_t pid = 0;
        const BgwHandleStatus status = GetBackgroundWorkerPid(handle, &pid);
        if (is_held_by_session(keeper))
            return true;
        if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED)
            return false;
        pg_usleep(2000);
    }
}

// If there is none. One that somebody terminates at once is started again.
void start_keeper(const LOCKTAG &keeper, Oid function) {
    bool kept = is_held_by_session(keeper);
    for (int starts = 0; !kept && starts < most_starts; starts++)
        kept = wait_until_kept(keeper, register_keeper(function));
    if (!kept)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("could not start the keeper of attached leases"),
                        errhint("See the server's log for the reason.")));
}

} // namespace

void ensure_keeper(Oid table, Oid function) {
    const LOCKTAG binding = binding_tag(table);
    const LOCKTAG keeper = keeper_tag(table);
    // Until the transaction ends: a keeper does not leave before it sees what was bound.
    take_lock(binding, binding_shared);
    if (is_held_by_session(keeper))
        return;
    take_lock(binding, binding_starter);
    start_keeper(keeper, function);
    give_back(binding, binding_starter);
}

void leave_successor(Oid function) {
    const Orders orders = {function, ""};
    BackgroundWorker worker = keeper_worker(MyDatabaseId, orders);
    RegisterDynamicBackgroundWorker(&worker, nullptr);
}

void register_boot_keepers(const char *databases) {
    List *names = NIL;
    if (!SplitIdentifierString(pstrdup(databases), ',', &names))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("invalid list of databases in \"lease.keeper_databases\"")));
    ListCell *cell = nullptr;
    foreach (cell, names) {
        Orders orders = {InvalidOid, ""};
        strlcpy(orders.database, (const char *)lfirst(cell), sizeof(orders.database));
        BackgroundWorker worker = keeper_worker(InvalidOid, orders);
        worker.bgw_restart_time = 10;
        RegisterBackgroundWorker(&worker);
    }
}

} // namespace lease
