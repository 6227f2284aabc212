// The server's headers, and every difference between its major versions 15 to 18.
// Include it after the project's pure headers and the C++ standard headers.
#ifndef LEASE_SERVER_HPP
#define LEASE_SERVER_HPP

extern "C" {
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "access/subtrans.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type_d.h"
#include "catalog/pg_sequence.h"
#include "commands/sequence.h"
#include "common/cryptohash.h"
#include "common/hashfn.h"
#include "common/sha2.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "storage/smgr.h"
#include "storage/sinvaladt.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "utils/guc_hooks.h"
#endif
}

namespace lease::server {

// 18 counts index look-ups for EXPLAIN; these are not part of any plan.
inline IndexScanDesc begin_index_scan(Relation heap, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 180000
    return index_beginscan(heap, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(heap, index, snapshot, keys, 0);
#endif
}

// 18 asks whether a deferrable primary key will do. It does not: ON CONFLICT refuses it.
inline Oid primary_key_of(Relation relation) {
#if PG_VERSION_NUM >= 180000
    return RelationGetPrimaryKeyIndex(relation, false);
#else
    return RelationGetPrimaryKeyIndex(relation);
#endif
}

// The process of a virtual transaction; null: it has gone, or is a prepared one.
inline PGPROC *process_of(const VirtualTransactionId &transaction) {
#if PG_VERSION_NUM >= 170000
    return transaction.procNumber == INVALID_PROC_NUMBER
               ? nullptr
               : ProcNumberGetProc(transaction.procNumber);
#else
    return transaction.backendId == InvalidBackendId ? nullptr
                                                     : BackendIdGetProc(transaction.backendId);
#endif
}

// Which transaction this process is in; each has another number.
inline LocalTransactionId local_transaction_id() {
#if PG_VERSION_NUM >= 170000
    return MyProc->vxid.lxid;
#else
    return MyProc->lxid;
#endif
}

// Whether that process still runs this transaction; it does not after PREPARE TRANSACTION.
inline bool is_running(const PGPROC *process, const VirtualTransactionId &transaction) {
#if PG_VERSION_NUM >= 170000
    return process->vxid.lxid == transaction.localTransactionId;
#else
    return process->lxid == transaction.localTransactionId;
#endif
}

// 17 asks whether a stronger lock will do, too.
inline bool holds_lock(const LOCKTAG &tag, LOCKMODE mode) {
#if PG_VERSION_NUM >= 170000
    return LockHeldByMe(&tag, mode, false);
#else
    return LockHeldByMe(&tag, mode);
#endif
}

// A process that sleeps in a transaction is ended by that setting, which 17 brought.
inline void forget_transaction_timeout() {
#if PG_VERSION_NUM >= 170000
    SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
#endif
}

// What pg_stat_activity shows of a process that sleeps; 17 can name it.
inline uint32 named_wait_event(uint32 &event, const char *name) {
#if PG_VERSION_NUM >= 170000
    if (event == 0)
        event = WaitEventExtensionNew(name);
#else
    (void)name;
    event = PG_WAIT_EXTENSION;
#endif
    return event;
}

inline uint32 queue_wait_event() {
    static uint32 event = 0;
    return named_wait_event(event, "LeaseQueue");
}

inline uint32 keeper_wait_event() {
    static uint32 event = 0;
    return named_wait_event(event, "LeaseKeeper");
}

// Which indexes want an entry for the new version of a row.
enum class IndexEntries { none, summarizing, all };

// 16 keeps an update HOT beside changed BRIN columns and says which indexes it left out.
inline TM_Result update_tuple(Relation relation, ItemPointer old_tid, HeapTuple fresh,
                              CommandId cid, bool wait, IndexEntries *entries) {
    TM_FailureData failure;
    LockTupleMode mode = LockTupleExclusive;
#if PG_VERSION_NUM >= 160000
    TU_UpdateIndexes update = TU_None;
    const TM_Result result =
        heap_update(relation, old_tid, fresh, cid, InvalidSnapshot, wait, &failure, &mode, &update);
    *entries = update == TU_None          ? IndexEntries::none
               : update == TU_Summarizing ? IndexEntries::summarizing
                                          : IndexEntries::all;
#else
    const TM_Result result =
        heap_update(relation, old_tid, fresh, cid, InvalidSnapshot, wait, &failure, &mode);
    *entries = HeapTupleIsHeapOnly(fresh) ? IndexEntries::none : IndexEntries::all;
#endif
    return result;
}

inline List *insert_index_tuples(ResultRelInfo *target, TupleTableSlot *slot, EState *estate,
                                 IndexEntries entries) {
#if PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(target, slot, estate, true, false, nullptr, NIL,
                                 entries == IndexEntries::summarizing);
#else
    (void)entries;
    return ExecInsertIndexTuples(target, slot, estate, true, false, nullptr, NIL);
#endif
}

} // namespace lease::server

#endif
