#include "keeper.hpp"

#include "care.hpp"
#include "gate.hpp"
#include "wait.hpp"

extern "C" {
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/catcache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#pragma GCC visibility push(default)
void lease_keeper_main(Datum database);
#pragma GCC visibility pop
}

namespace lease {

namespace {

constexpr Usec linger = 2000000; // after nothing is bound any more
constexpr Usec longest_pause = 2000000;
constexpr Usec shortest_pause = 10000;

// What a keeper is told, in the worker's bgw_extra.
struct Orders {
    Oid function;               // of the extension; invalid: find it
    char database[NAMEDATALEN]; // empty: the worker's argument is its OID
};
static_assert(sizeof(Orders) <= BGW_EXTRALEN);

BackgroundWorker keeper_worker(Oid database, const Orders &orders) {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    strlcpy(worker.bgw_library_name, "$libdir/lease", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, "lease_keeper_main", sizeof(worker.bgw_function_name));
    strlcpy(worker.bgw_type, "lease keeper", sizeof(worker.bgw_type));
    snprintf(worker.bgw_name, sizeof(worker.bgw_name), "lease keeper of database %s",
             orders.database[0] != '\0' ? orders.database : psprintf("%u", database));
    memcpy(worker.bgw_extra, &orders, sizeof(orders));
    return worker;
}

// Waits until some keeper is in office: this one, or another that was started beside it.
void wait_until_kept(Oid table, BackgroundWorkerHandle *handle) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        pid_t pid = 0;
        const BgwHandleStatus status = GetBackgroundWorkerPid(handle, &pid);
        if (is_held_by_session(keeper_tag(table)))
            return;
        if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED)
            ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                            errmsg("could not start the keeper of attached leases"),
                            errhint("See the server's log for the reason.")));
        pg_usleep(2000);
    }
}

void start_keeper(Oid table, Oid function) {
    const Orders orders = {function, ""};
    BackgroundWorker worker = keeper_worker(MyDatabaseId, orders);
    BackgroundWorkerHandle *handle = nullptr;
    if (!RegisterDynamicBackgroundWorker(&worker, &handle))
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("could not start the keeper of attached leases"),
                        errdetail("No background worker slot is free."),
                        errhint("Raise \"max_worker_processes\".")));
    wait_until_kept(table, handle);
}

// A session that looks whether there is a keeper holds the lock for a moment: try again then.
bool become_the_keeper(Oid table) {
    const LOCKTAG keeper = keeper_tag(table);
    for (int attempt = 0; attempt < 10; attempt++) {
        if (LockAcquire(&keeper, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL)
            return true;
        pg_usleep(10000);
    }
    return false;
}

void resign(Oid table) {
    const LOCKTAG keeper = keeper_tag(table);
    LockRelease(&keeper, ExclusiveLock, true);
}

// The table of leases; invalid if the extension is not there (any more).
Oid table_of(Oid function) {
    const Oid schema = OidIsValid(function) ? get_func_namespace(function) : InvalidOid;
    return OidIsValid(schema) ? get_relname_relid("dist_lock", schema) : InvalidOid;
}

// A function of the extension by its name, for a keeper that was not told one.
Oid find_function() {
    const Oid extension = get_extension_oid("lease", true);
    Oid found = InvalidOid;
    CatCList *functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("lease_attach"));
    for (int i = 0; i < functions->n_members && OidIsValid(extension); i++) {
        const auto *form = (Form_pg_proc)GETSTRUCT(&functions->members[i]->tuple);
        if (getExtensionOfObject(ProcedureRelationId, form->oid) == extension)
            found = form->oid;
    }
    ReleaseSysCacheList(functions);
    return found;
}

struct Keeper {
    bool stays; // was started with the server
    Oid function;
    Oid table; // whose keeper this process is; invalid: of none yet
    Usec idle_since;
};

// Nobody is binding a lease at this moment, nothing is bound, and who comes later sees that there
// is no keeper.
bool may_leave(Keeper &keeper) {
    StartTransactionCommand();
    bool leaves = try_lock(binding_tag(keeper.table), ExclusiveLock);
    if (leaves) {
        PushActiveSnapshot(GetTransactionSnapshot());
        Table table = open_table(keeper.function);
        for_each_bound(
            table, [](const Row &, std::string_view, void *arg) { *(bool *)arg = false; }, &leaves);
        close_table(table);
        PopActiveSnapshot();
        if (leaves)
            resign(keeper.table);
    }
    CommitTransactionCommand();
    return leaves;
}

// Finds the table, and becomes its keeper. False: there is none, or it has another one.
bool take_office(Keeper &keeper) {
    StartTransactionCommand();
    if (keeper.stays && !OidIsValid(table_of(keeper.function)))
        keeper.function = find_function();
    const Oid table = table_of(keeper.function);
    if (table != keeper.table && OidIsValid(keeper.table))
        resign(keeper.table);
    if (table != keeper.table)
        keeper.table = OidIsValid(table) && become_the_keeper(table) ? table : InvalidOid;
    CommitTransactionCommand();
    return OidIsValid(keeper.table);
}

// The next round, and when the one after it is due. An error of the whole round is logged.
Usec do_round(Keeper &keeper) {
    const MemoryContext context = CurrentMemoryContext;
    volatile Usec next = read_clock() + longest_pause;
    PG_TRY();
    {
        const Round round = care_round(keeper.function);
        next = Min(next, round.next);
        if (round.anything_bound)
            keeper.idle_since = 0;
        else if (keeper.idle_since == 0)
            keeper.idle_since = read_clock();
    }
    PG_CATCH();
    {
        EmitErrorReport();
        FlushErrorState();
        AbortCurrentTransaction();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return next;
}

// In a transaction, so that who looks for the holder of the keeper's lock finds this process; it
// has no snapshot.
void sleep_until(Usec next) {
    const Usec length = Max(shortest_pause, next - read_clock());
    StartTransactionCommand();
    pgstat_report_activity(STATE_IDLE, nullptr);
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, (long)(length / 1000),
              server::keeper_wait_event());
    CommitTransactionCommand();
    pgstat_report_activity(STATE_RUNNING, "lease keeper");
}

// Sessions count on a keeper: who is told to end leaves another one behind. (At a shutdown nobody
// starts it; in a database that is being dropped it finds no database.)
void end_on_request(const Keeper &keeper) {
    StartTransactionCommand();
    resign(keeper.table);
    if (!keeper.stays) {
        const Orders orders = {keeper.function, ""};
        BackgroundWorker worker = keeper_worker(MyDatabaseId, orders);
        worker.bgw_notify_pid = 0;
        RegisterDynamicBackgroundWorker(&worker, nullptr);
    }
    CommitTransactionCommand();
    proc_exit(keeper.stays ? 1 : 0); // 1: the server starts it again
}

void keep(Keeper &keeper) {
    const MemoryContext per_round = AllocSetContextCreate(
        TopMemoryContext, "round of the lease keeper", ALLOCSET_DEFAULT_SIZES);
    for (;;) {
        ResetLatch(MyLatch);
        MemoryContextReset(per_round);
        MemoryContextSwitchTo(per_round);
        if (ShutdownRequestPending)
            end_on_request(keeper);
        CHECK_FOR_INTERRUPTS();
        Usec next = read_clock() + longest_pause;
        if (take_office(keeper))
            next = do_round(keeper);
        else if (!keeper.stays)
            proc_exit(0);
        if (!keeper.stays && keeper.idle_since != 0 && read_clock() - keeper.idle_since >= linger &&
            may_leave(keeper))
            proc_exit(0);
        sleep_until(next);
    }
}

} // namespace

void ensure_keeper(Oid table, Oid function) {
    // Shared until the transaction ends: a keeper does not leave before it sees what was bound.
    take_lock(binding_tag(table), ShareLock);
    if (!is_held_by_session(keeper_tag(table)))
        start_keeper(table, function);
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
        worker.bgw_notify_pid = 0;
        RegisterBackgroundWorker(&worker);
    }
}

} // namespace lease

void lease_keeper_main(Datum database) {
    using namespace lease;
    Orders orders = {};
    memcpy(&orders, MyBgworkerEntry->bgw_extra, sizeof(orders));

    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
    const bool stays = orders.database[0] != '\0';
    if (stays)
        BackgroundWorkerInitializeConnection(orders.database, nullptr, 0);
    else
        BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);

    server::forget_transaction_timeout();
    SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
    Keeper keeper = {stays, orders.function, InvalidOid, 0};
    keep(keeper);
}
