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

// When to look again if nothing changed: at an instant (0: none), at the deadline, or a second
// from now.
Usec next_look_at(Usec instant, std::optional<Usec> deadline) {
    Usec at = read_clock() + longest_sleep;
    if (instant != 0)
        at = Min(at, instant);
    if (deadline)
        at = Min(at, *deadline);
    return at;
}

// Sleeps until then, or until something changed.
void sleep_until(Usec instant) {
    const Usec length = instant - read_clock();
    if (length > 0)
        WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                  (long)(length / 1000) + 1, server::queue_wait_event());
}

bool is_over(std::optional<Usec> deadline) {
    return deadline && *deadline <= read_clock();
}

// The memory of one look after the other.
struct Looking {
    MemoryContext caller;
    MemoryContext per_look;
};

Looking begin_looking() {
    Looking looking = {CurrentMemoryContext, nullptr};
    looking.per_look =
        AllocSetContextCreate(looking.caller, "waiting for a lease", ALLOCSET_DEFAULT_SIZES);
    return looking;
}

// Before each look, and after the wait that came before it: what woke us has been heard, and the
// client is still there.
void begin_look(const Looking &looking) {
    MemoryContextReset(looking.per_look);
    MemoryContextSwitchTo(looking.per_look);
    ResetLatch(MyLatch);
    leave_if_client_has_gone();
}

void end_looking(const Looking &looking) {
    MemoryContextSwitchTo(looking.caller);
    MemoryContextDelete(looking.per_look);
}

// One look under a snapshot that is not the transaction's, and that ends with the look.
template <typename Look> auto look_briefly(Oid function, Look look) {
    Table table = open_table(function, AccessShareLock);
    PushActiveSnapshot(GetCatalogSnapshot(RelationGetRelid(table.heap)));
    const auto seen = look(table);
    PopActiveSnapshot();
    close_table(table);
    InvalidateCatalogSnapshotConditionally();
    return seen;
}

void wait_at_gate(const LOCKTAG &gate, LOCKMODE mode, const Patience &patience) {
    if (wait_for_lock(gate, mode, patience))
        give_back(gate, mode);
}

// Waits until another attempt is worth it.
void wait_after(const Attempt &attempt, const LOCKTAG &gate, const Patience &patience) {
    switch (attempt.verdict) {
    case Verdict::busy:
        sleep_until(next_look_at(attempt.until, patience.deadline));
        break;
    case Verdict::gate_busy:
        wait_at_gate(gate, gate_alone, patience);
        break;
    case Verdict::row_busy:
    case Verdict::own_busy:
        wait_for_lockers(attempt.lockers, patience);
        break;
    case Verdict::held:
    case Verdict::look_again:
        break;
    }
}

Attempt attempt_briefly(const Wanted &wanted, Turn turn) {
    return look_briefly(wanted.function, [&wanted, turn](Table &table) {
        return attempt_lease(table, wanted.name, wanted.owner, wanted.ttl, turn);
    });
}

// Attempts and waits, the last time after the deadline.
std::optional<std::int64_t> acquire_as_head(const Wanted &wanted, const Patience &patience) {
    const LOCKTAG gate = gate_tag(wanted.name);
    const Looking looking = begin_looking();
    std::optional<std::int64_t> token;
    for (bool over = false; !token && !over;) {
        over = is_over(patience.deadline);
        begin_look(looking);
        // A grant, release or break that has not committed: what the row says is about to change,
        // and it wakes nobody who came after it looked for sleepers. To wait for its lock and not
        // for its transaction sees it rolled back to a savepoint, too.
        if (is_held(gate, gate_shared)) {
            wait_at_gate(gate, gate_shared, patience);
            continue;
        }
        const Attempt attempt = attempt_briefly(wanted, Turn::head);
        if (attempt.verdict == Verdict::held)
            token = attempt.token;
        else if (!over)
            wait_after(attempt, gate, patience);
    }
    end_looking(looking);
    return token;
}

// An owner whose own row is busy does not queue: those who do wait for it to end. Nothing: it is
// not the holder, or the time is up.
std::optional<std::int64_t> extend_out_of_turn(const Wanted &wanted, const Patience &patience) {
    const Looking looking = begin_looking();
    std::optional<std::int64_t> token;
    for (bool own = true; own && !token && !is_over(patience.deadline);) {
        begin_look(looking);
        const Attempt attempt = attempt_briefly(wanted, Turn::unknown);
        if (attempt.verdict == Verdict::held)
            token = attempt.token;
        else if (attempt.verdict == Verdict::own_busy)
            wait_for_lockers(
                attempt.lockers,
                {Min(attempt.until, patience.deadline.value_or(attempt.until)), false});
        else
            own = false;
    }
    end_looking(looking);
    return token;
}

// What a watcher sees.
struct Sight {
    std::optional<std::int64_t> token; // of the live tenure
    Usec expiry;                       // of that; 0: nobody holds it
};

Sight see_briefly(Oid function, std::string_view name) {
    return look_briefly(function, [name](Table &table) {
        Sight sight = {std::nullopt, 0};
        Look look = find(table, name);
        if (state_at(look.row_if_any(), read_clock()) == State::held)
            sight = {look.row.token, *look.row.expiry};
        let_go(look);
        return sight;
    });
}

} // namespace

std::optional<std::int64_t> acquire_lease(const Wanted &wanted, std::optional<Usec> deadline,
                                          bool own_row_is_busy, bool to_the_end) {
    const Patience patience{deadline, false};
    if (own_row_is_busy) {
        const std::optional<std::int64_t> token = extend_out_of_turn(wanted, patience);
        if (token)
            return token;
    }
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
    const LOCKTAG gate = gate_tag(name);
    const LOCKTAG watch = watch_tag(gate);
    take_lock(watch, ShareLock);
    const Looking looking = begin_looking();
    std::optional<std::int64_t> live = known;
    for (bool over = false; live == known && !over;) {
        over = is_over(deadline);
        begin_look(looking);
        // In this order: a change that has not committed may have looked for sleepers before we
        // were one, and one that has is seen.
        int changes = 0;
        const VirtualTransactionId *open = GetLockConflicts(&gate, gate_shared, &changes);
        const Sight sight = see_briefly(function, name);
        live = sight.token;
        if (live != known || over)
            break;
        const Usec until = next_look_at(sight.expiry, deadline);
        for (int i = 0; i < changes; i++)
            wait_for_transaction(open[i], {until, false});
        if (changes == 0)
            sleep_until(until);
    }
    end_looking(looking);
    give_back(watch, ShareLock);
    return live;
}

} // namespace lease
