#include "queue.hpp"

#include "gate.hpp"
#include "operation.hpp"
#include "wait.hpp"
#include "wake.hpp"

extern "C" {
#include "tcop/tcopprot.h"

// Of libpq/libpq.h, which wants headers of Kerberos.
bool pq_check_connection(void);
}

namespace lease {

namespace {

constexpr Usec longest_sleep = 1000000;

// The server does not notice by itself that the client of a sleeping session has gone.
void leave_if_client_has_gone() {
    if (MyProcPort != nullptr && whereToSendOutput == DestRemote && !pq_check_connection()) {
        ClientConnectionLost = true;
        InterruptPending = true;
    }
    CHECK_FOR_INTERRUPTS();
}

// Sleeps until something changed, an instant (0: none), the deadline, or a second has gone by.
void sleep_until(Usec instant, std::optional<Usec> deadline) {
    const Usec now = read_clock();
    Usec length = longest_sleep;
    if (instant != 0)
        length = Min(length, instant - now);
    if (deadline)
        length = Min(length, *deadline - now);
    InvalidateCatalogSnapshotConditionally();
    if (length > 0)
        WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  (long)(length / 1000) + 1, server::queue_wait_event());
}

bool is_over(std::optional<Usec> deadline) {
    return deadline && *deadline <= read_clock();
}

// Waits for grants, releases and breaks that have not committed: what the row says is about to
// change, and they wake nobody who came after they looked for sleepers. False: the time is up.
bool wait_for_open_changes(std::string_view name, const Patience &patience) {
    const LOCKTAG gate = gate_tag(name);
    int count = 0;
    const VirtualTransactionId *holders = GetLockConflicts(&gate, gate_shared, &count);
    for (int i = 0; i < count; i++)
        if (!wait_for_transaction(holders[i], patience))
            return false;
    return true;
}

// One look under a snapshot that is not the transaction's, and that ends with the look.
template <typename Look> auto look_briefly(Oid function, Look look) {
    Table table = open_table(function);
    PushActiveSnapshot(GetCatalogSnapshot(RelationGetRelid(table.heap)));
    const auto seen = look(table);
    PopActiveSnapshot();
    close_table(table);
    InvalidateCatalogSnapshotConditionally();
    return seen;
}

// Waits until another attempt is worth it.
void wait_after(const Attempt &attempt, std::string_view name, const Patience &patience) {
    switch (attempt.verdict) {
    case Verdict::busy:
        sleep_until(attempt.until, patience.deadline);
        break;
    case Verdict::gate_busy: {
        const LOCKTAG gate = gate_tag(name);
        if (wait_for_lock(gate, gate_alone, patience))
            give_back(gate, gate_alone);
        break;
    }
    case Verdict::row_busy:
        wait_for_lockers(attempt.lockers, patience);
        break;
    case Verdict::held:
    case Verdict::look_again:
        break;
    }
}

// Looks and waits until the look finds what it is there for, or the time is up. `look` gives
// whether it did; `wait` sleeps until it is worth another look.
template <typename Look, typename Sleep>
bool look_until(Oid function, std::string_view name, const Patience &patience, Look look,
                Sleep sleep) {
    const MemoryContext caller = CurrentMemoryContext;
    const MemoryContext per_look =
        AllocSetContextCreate(caller, "waiting for a lease", ALLOCSET_DEFAULT_SIZES);
    bool found = false;
    for (bool over = false; !found && !over;) {
        MemoryContextReset(per_look);
        MemoryContextSwitchTo(per_look);
        ResetLatch(MyLatch);
        leave_if_client_has_gone();
        if (wait_for_open_changes(name, patience))
            found = look_briefly(function, look);
        over = is_over(patience.deadline);
        if (!found && !over)
            sleep();
        MemoryContextSwitchTo(caller);
    }
    MemoryContextDelete(per_look);
    return found;
}

std::optional<std::int64_t> acquire_as_head(const Wanted &wanted, const Patience &patience) {
    Attempt attempt = {};
    const bool held = look_until(
        wanted.function, wanted.name, patience,
        [&wanted, &attempt](Table &table) {
            attempt = attempt_lease(table, wanted.name, wanted.owner, wanted.ttl, Turn::head);
            return attempt.verdict == Verdict::held;
        },
        [&wanted, &attempt, &patience] { wait_after(attempt, wanted.name, patience); });
    return held ? std::optional<std::int64_t>(attempt.token) : std::nullopt;
}

} // namespace

std::optional<std::int64_t> acquire_lease(const Wanted &wanted, std::optional<Usec> deadline,
                                          bool to_the_end) {
    const Patience patience{deadline, false};
    const LOCKTAG queue = queue_tag(gate_tag(wanted.name));
    if (!wait_for_lock(queue, ExclusiveLock, patience))
        return std::nullopt;
    const std::optional<std::int64_t> token = acquire_as_head(wanted, patience);
    if (!token || !to_the_end)
        give_back(queue, ExclusiveLock);
    return token;
}

std::optional<std::int64_t> watch_lease(Oid function, std::string_view name,
                                        std::optional<std::int64_t> known,
                                        std::optional<Usec> deadline) {
    const Patience patience{deadline, false};
    const LOCKTAG watch = watch_tag(gate_tag(name));
    take_lock(watch, ShareLock);
    std::optional<std::int64_t> live = known;
    Usec expiry = 0;
    look_until(
        function, name, patience,
        [name, known, &live, &expiry](Table &table) {
            Look look = find_surely(table, name);
            const bool held = state_at(look.row_if_any(), read_clock()) == State::held;
            let_go(look);
            live = held ? std::optional<std::int64_t>(look.row.token) : std::nullopt;
            expiry = held ? *look.row.expiry : 0;
            return live != known;
        },
        [&expiry, &patience] { sleep_until(expiry, patience.deadline); });
    give_back(watch, ShareLock);
    return live;
}

} // namespace lease
