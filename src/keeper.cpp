#include "keeper.hpp"

#include "care.hpp"
#include "failures.hpp"
#include "gate.hpp"
#include "wait.hpp"
#include "worker.hpp"

extern "C" {
#include "catalog/pg_database.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/catcache.h"
#include "utils/syscache.h"
}

namespace lease {

namespace {

constexpr Usec linger = 2000000; // after nothing is bound any more
constexpr Usec longest_pause = 2000000;
constexpr Usec shortest_pause = 10000;
constexpr Usec soon = 50000;
constexpr Usec longest_failure = 60000000; // then there is nothing to keep

// A session that looks whether there is a keeper holds the lock for a moment: try again then.
bool become_the_keeper(Oid table) {
    const LOCKTAG keeper = keeper_tag(table);
    bool in_office = false;
    for (int attempt = 0; !in_office && attempt < 10; attempt++) {
        if (attempt > 0)
            pg_usleep(10000);
        in_office = LockAcquire(&keeper, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
    }
    return in_office;
}

void resign(Oid table) {
    const LOCKTAG keeper = keeper_tag(table);
    LockRelease(&keeper, ExclusiveLock, true);
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
    bool done;
    Oid function;
    Oid table; // whose keeper this process is; invalid: of none yet
    Usec idle_since;
    Usec failing_since; // of rounds as a whole; 0: they do not fail
};

// Nobody is binding a lease at this moment, nothing is bound, and who comes later sees that there
// is no keeper.
bool may_leave(const Keeper &keeper) {
    StartTransactionCommand();
    const bool leaves = try_lock(binding_tag(keeper.table), binding_alone) &&
                        !anything_bound(keeper.table, keeper.function);
    if (leaves)
        resign(keeper.table);
    CommitTransactionCommand();
    return leaves;
}

// Finds the table, and becomes its keeper. False: there is none, or it has another one.
bool take_office(Keeper &keeper) {
    StartTransactionCommand();
    if (keeper.stays && !OidIsValid(find_table(keeper.function)))
        keeper.function = find_function();
    const Oid table = find_table(keeper.function);
    if (table != keeper.table) {
        if (OidIsValid(keeper.table))
            resign(keeper.table);
        keeper.table = OidIsValid(table) && become_the_keeper(table) ? table : InvalidOid;
        keeper.idle_since = 0;
    }
    CommitTransactionCommand();
    return OidIsValid(keeper.table);
}

// The next round; gives when the one after it is due.
Usec do_round(Keeper &keeper) {
    if (!take_office(keeper)) {
        keeper.done = !keeper.stays;
        return read_clock() + longest_pause;
    }
    const Round round = care_round(keeper.table, keeper.function);
    const Usec now = read_clock();
    if (round.anything_bound)
        keeper.idle_since = 0;
    else if (keeper.idle_since == 0)
        keeper.idle_since = now;
    if (keeper.stays || keeper.idle_since == 0)
        return Min(round.next, now + longest_pause);
    keeper.done = now - keeper.idle_since >= linger && may_leave(keeper);
    return Max(now + soon, keeper.idle_since + linger);
}

// The same. An error of the whole round is logged; when there is nothing but errors, this is no
// way to keep leases, and DROP DATABASE would wait for it.
Usec try_round(Keeper &keeper) {
    const MemoryContext context = CurrentMemoryContext;
    volatile Usec next = 0;
    PG_TRY();
    {
        CHECK_FOR_INTERRUPTS();
        next = do_round(keeper);
        keeper.failing_since = 0;
    }
    PG_CATCH();
    {
        if (!ShutdownRequestPending)
            EmitErrorReport();
        FlushErrorState();
        AbortCurrentTransaction();
        next = after_failure(keeper.failing_since);
        keeper.done = !keeper.stays && read_clock() - keeper.failing_since > longest_failure;
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return next;
}

// In a transaction, so that who looks for the holder of the keeper's lock finds this process; it
// has no snapshot.
void sleep_until(Usec next) {
    pgstat_report_stat(false); // autovacuum goes by it
    StartTransactionCommand();
    pgstat_report_activity(STATE_IDLE, nullptr);
    const Usec length = Max(shortest_pause, next - read_clock());
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
              (long)((length + 999) / 1000), server::keeper_wait_event());
    CommitTransactionCommand();
    pgstat_report_activity(STATE_RUNNING, "lease keeper");
}

volatile sig_atomic_t connected = 0;

// Ends what the keeper is in the middle of, too: a commit may be waiting for a standby. But it has
// to come so far that it can leave a successor.
void on_terminate(SIGNAL_ARGS) {
    const int error = errno;
    (void)postgres_signal_arg;
    ShutdownRequestPending = true;
    if (connected) {
        QueryCancelPending = true;
        InterruptPending = true;
    }
    SetLatch(MyLatch);
    errno = error;
}

// DROP DATABASE has locked it alone.
bool database_goes() {
    LOCKTAG database;
    SET_LOCKTAG_OBJECT(database, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
    return !try_lock(database, AccessShareLock);
}

// Sessions count on a keeper: who is told to end leaves another one behind, unless there is one.
// (At a shutdown nobody starts it.)
void end_on_request(Keeper &keeper) {
    QueryCancelPending = false;
    const bool in_office = OidIsValid(keeper.table);
    if (in_office || (!keeper.stays && take_office(keeper))) { // or was about to be
        StartTransactionCommand();
        resign(keeper.table);
        if (!database_goes())
            leave_successor(keeper.function);
        CommitTransactionCommand();
    }
    proc_exit(keeper.stays ? 1 : 0); // 1: the server starts it again
}

void keep(Keeper &keeper) {
    const MemoryContext per_round = AllocSetContextCreate(
        TopMemoryContext, "round of the lease keeper", ALLOCSET_DEFAULT_SIZES);
    for (;;) {
        ResetLatch(MyLatch);
        MemoryContextReset(per_round);
        MemoryContextSwitchTo(per_round);
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
        const Usec next = ShutdownRequestPending ? 0 : try_round(keeper);
        if (ShutdownRequestPending)
            end_on_request(keeper);
        if (keeper.done)
            proc_exit(0);
        sleep_until(next);
    }
}

} // namespace

} // namespace lease

void lease_keeper_main(Datum database) {
    using namespace lease;
    Orders orders = {};
    memcpy(&orders, MyBgworkerEntry->bgw_extra, sizeof(orders));

    pqsignal(SIGTERM, on_terminate);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
    const bool stays = orders.database[0] != '\0';
    if (stays)
        BackgroundWorkerInitializeConnection(orders.database, nullptr, 0);
    else
        BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
    connected = 1;

    server::forget_transaction_timeout();
    SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
    Keeper keeper = {stays, false, orders.function, InvalidOid, 0, 0};
    keep(keeper);
}
