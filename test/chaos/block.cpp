// Transaction blocks of a contender: savepoints and two phases included.
#include "caller.hpp"

#include "text.hpp"

namespace chaos {

bool Caller::begin() {
    // What a client was told to be written is not forgotten by a crash.
    if (!plain("BEGIN ISOLATION LEVEL " + some_level()) ||
        !plain("SET LOCAL synchronous_commit = on")) {
        rollback();
        return false;
    }
    transaction_ = {contender_, ++last_transaction_, Outcome::unknown, 0, never};
    has_savepoint_ = false;
    return true;
}

bool Caller::savepoint() {
    if (has_savepoint_)
        return true;
    since_savepoint_.clear();
    has_savepoint_ = plain("SAVEPOINT s");
    return has_savepoint_;
}

bool Caller::rollback_to_savepoint() {
    if (!has_savepoint_ || !plain("ROLLBACK TO SAVEPOINT s") || !plain("RELEASE SAVEPOINT s"))
        return false;
    has_savepoint_ = false;
    for (Operation &operation : since_savepoint_) {
        operation.undone = true;
        teller_.tell(operation);
    }
    return true;
}

void Caller::end_transaction(Outcome outcome) {
    transaction_.outcome = outcome;
    transaction_.answered = outcome == Outcome::unknown ? never : now();
    teller_.tell(transaction_);
    transaction_ = {};
    has_savepoint_ = false;
}

// Told before it is asked for, too: this process may not live to tell the answer.
Answer Caller::ask_for_end(const std::string &sql) {
    transaction_.asked = now();
    teller_.tell(transaction_);
    Answer answer = ask(sql, {});
    if (!answer.ok())
        leave_block();
    return answer;
}

// What was cancelled before it could end the block has left that to us; and so again.
void Caller::leave_block() {
    while (!lost_ && !plain("ROLLBACK"))
        ;
}

bool Caller::commit() {
    const Answer answer = ask_for_end("COMMIT");
    const bool committed = answer.tag == "COMMIT"; // a block that failed says ROLLBACK
    end_transaction(answer.lost ? Outcome::unknown : committed ? Outcome::yes : Outcome::no);
    return committed;
}

void Caller::rollback() {
    leave_block();
    transaction_ = {};
    has_savepoint_ = false;
}

std::string Caller::gid() const {
    return text("'", owner_of(contender_), "/", transaction_.id, "'");
}

bool Caller::prepare() {
    const Answer answer = ask_for_end("PREPARE TRANSACTION " + gid());
    const bool prepared = answer.tag == "PREPARE TRANSACTION";
    if (!prepared)
        end_transaction(answer.lost ? Outcome::unknown : Outcome::no);
    return prepared;
}

void Caller::end_prepared(bool commit) {
    // It is as durable as the session that commits it has it.
    if (!plain("SET synchronous_commit = on")) {
        end_transaction(Outcome::unknown);
        return;
    }
    const Answer answer = ask_for_end((commit ? "COMMIT PREPARED " : "ROLLBACK PREPARED ") + gid());
    // Somebody may have ended it for us: who, and how, is not known.
    end_transaction(!answer.ok() ? Outcome::unknown : commit ? Outcome::yes : Outcome::no);
}

void Caller::check_leftovers() {
    const Answer answer = ask(
        // Without the one that says that the session lives, for what it once attached.
        "SELECT pg_current_xact_id_if_assigned(), string_agg(concat_ws(' ', locktype, mode, "
        "relation::regclass, objid), ', ') FROM pg_locks WHERE pid = pg_backend_pid() AND "
        "(locktype NOT IN ('virtualxid', 'relation') OR relation = 'dist_lock'::regclass) "
        "AND (transactionid = pg_current_xact_id_if_assigned()::xid) IS NOT TRUE "
        "AND objsubid IS DISTINCT FROM 27655",
        {});
    if (!answer.ok())
        return;
    tell_left(Message::Type::id, answer.rows.at(0).at(0));
    tell_left(Message::Type::leftover, answer.rows.at(0).at(1));
}

void Caller::tell_left(Message::Type type, const std::optional<std::string> &what) const {
    if (what)
        teller_.tell(
            type, text("a losing try of contender ", contender_, " left, at ", now(), ": ", *what));
}

} // namespace chaos
