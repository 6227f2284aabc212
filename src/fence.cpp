#include "fence.hpp"

#include "core/faults.hpp"
#include "gate.hpp"
#include "reasons.hpp"
#include "wait.hpp"

namespace lease {

namespace {

// What the current transaction has passed, and what it was granted. All of it lives in the
// server's memory context of the transaction, and ends with it.
struct Passed {
    Passed *next;
    SubTransactionId subtransaction;
    size_t length;
    char name[FLEXIBLE_ARRAY_MEMBER];
};

struct OwnGrant {
    OwnGrant *next = nullptr;
    LOCKTAG gate = {}; // stands for the lease's name
    std::int64_t token = 0;
    std::optional<std::int64_t> after;
    bool snapshot_sees_all = false; // that committed before the grant
};

Passed *passed;
OwnGrant *own_grants;

void on_transaction_end(XactEvent event, void *) {
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE) {
        passed = nullptr;
        own_grants = nullptr;
    }
}

// What was passed in a subtransaction is undone with it, or goes to its parent.
void on_subtransaction_end(SubXactEvent event, SubTransactionId ended, SubTransactionId parent,
                           void *) {
    if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
        return;
    // The newest are in front, and those of a subtransaction stand together.
    for (Passed *one = passed; one != nullptr && one->subtransaction == ended; one = one->next) {
        if (event == SUBXACT_EVENT_ABORT_SUB)
            passed = one->next;
        else
            one->subtransaction = parent;
    }
}

void remember_passed(std::string_view name) {
    if (has_passed_fence(name))
        return;
    auto *one =
        (Passed *)MemoryContextAlloc(TopTransactionContext, offsetof(Passed, name) + name.size());
    one->next = passed;
    one->subtransaction = GetCurrentSubTransactionId();
    one->length = name.size();
    memcpy(one->name, name.data(), name.size());
    passed = one;
}

const OwnGrant *own_grant_of(std::string_view name, std::int64_t token) {
    const LOCKTAG gate = gate_tag(name);
    for (const OwnGrant *grant = own_grants; grant != nullptr; grant = grant->next)
        if (grant->token == token && is_same_lease(grant->gate, gate))
            return grant;
    return nullptr;
}

// Whether no transaction has ended since the snapshot of this one was taken.
bool snapshot_is_current() {
    if (!FirstSnapshotSet) // it will be taken later
        return true;
    const SnapshotData *ours = GetTransactionSnapshot();
    const SnapshotData *latest = GetLatestSnapshot();
    return ours->xmax == latest->xmax && ours->xcnt == latest->xcnt &&
           memcmp(ours->xip, latest->xip, ours->xcnt * sizeof(TransactionId)) == 0;
}

// What the tenure before wrote is in no snapshot that was taken before it ended. One that sees
// this tenure's grant is not such a one; nor is, for a grant of this very transaction, one that
// sees the release of the tenure before, or that was current when the grant was made.
bool snapshot_is_too_old(Table &table, std::string_view name, std::int64_t token) {
    const OwnGrant *grant = own_grant_of(name, token);
    if (grant != nullptr && grant->snapshot_sees_all)
        return false;
    const SeenTenure seen = tenure_before_transaction(table, name);
    if (grant == nullptr)
        return seen.token != token;
    return !seen.token || seen.token != grant->after || !seen.ended;
}

void check_snapshot(Table &table, std::string_view name, std::int64_t token) {
    if (IsolationUsesXactSnapshot() && snapshot_is_too_old(table, name, token))
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not pass the fence of lease \"%s\": the transaction's "
                               "snapshot is older than the grant",
                               pnstrdup(name.data(), name.size())),
                        errhint("Take the lease before the transaction, and try that again with "
                                "lease_fence() as its first statement.")));
}

// The token stands for its tenure, whoever the owner is. Gives the row of the live tenure.
Look require_live(Table &table, std::string_view name, std::int64_t token) {
    Look look = find(table, name);
    const Row *row = look.row_if_any();
    const Claim claim{row != nullptr && row->owner ? *row->owner : std::string_view(), token, true};
    const Usec now = read_clock();
    const Answer answer{standing_of(look, claim, now), look, now};
    if (answer.standing != Standing::holder)
        ereport(ERROR,
                (errcode(sqlstate_lease),
                 errmsg("token " INT64_FORMAT " is not the live tenure of lease \"%s\"", token,
                        pnstrdup(name.data(), name.size())),
                 errdetail_internal("%s", answer.standing == Standing::other_role
                                              ? "It was granted to a role whose privileges the "
                                                "current user does not have."
                                              : reason_of(answer, claim)),
                 errhint("The lease was lost: stop the work that it guards.")));
    return look;
}

// To the end of the transaction. Who has lost the lease must not hold up those who want it, and
// who had to wait for the gate may have lost it meanwhile: so it looks before and after.
void take_gate_of_live(Table &table, std::string_view name, std::int64_t token) {
    const LOCKTAG gate = gate_tag(name);
    Look look = require_live(table, name, token);
    const bool at_once = try_lock(gate, gate_shared);
    const bool stands =
        at_once && is_unchanged(look) && state_at(&look.row, read_clock()) == State::held;
    let_go(look); // no pin over a wait
    if (stands)
        return;
    if (!at_once)
        take_lock(gate, gate_shared);
    look = require_live(table, name, token);
    let_go(look);
}

} // namespace

void watch_fences() {
    RegisterXactCallback(on_transaction_end, nullptr);
    RegisterSubXactCallback(on_subtransaction_end, nullptr);
}

void pass_fence(Table &table, std::string_view name, std::int64_t token) {
    take_gate_of_live(table, name, token);
    check_snapshot(table, name, token);
    remember_passed(name);
    if (planted("fence-not-to-end"))
        give_back(gate_tag(name), gate_shared);
}

bool has_passed_fence(std::string_view name) {
    for (const Passed *one = passed; one != nullptr; one = one->next)
        if (std::string_view(one->name, one->length) == name)
            return true;
    return false;
}

void note_own_grant(std::string_view name, std::int64_t token, std::optional<std::int64_t> after) {
    if (!IsolationUsesXactSnapshot())
        return;
    // After a tenure of our own, nobody else's came in between: the gate was ours.
    const OwnGrant *before = after ? own_grant_of(name, *after) : nullptr;
    auto *grant = (OwnGrant *)MemoryContextAlloc(TopTransactionContext, sizeof(OwnGrant));
    if (before != nullptr)
        *grant = {own_grants, gate_tag(name), token, before->after, before->snapshot_sees_all};
    else
        *grant = {own_grants, gate_tag(name), token, after, snapshot_is_current()};
    own_grants = grant;
}

} // namespace lease
