// One contender's calls, one at a time, each told before and after.
// Invariant: what may have been done is never told to be certain, nor the other way round.
#ifndef LEASE_CHAOS_CALLER_HPP
#define LEASE_CHAOS_CALLER_HPP

#include "plan.hpp"
#include "server.hpp"
#include "telling.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace chaos {

std::string name_of_lease(int lease);
std::string owner_of(int contender);
std::string interval(Usec length);

// An error that a client has to reckon with while things go wrong.
bool is_expected(const std::string &state);

class Caller {
public:
    Caller(const Plan &plan, const Teller &teller, Shared &shared, Dice &dice);

    // With other settings, and sometimes over the relay; as another contender if it is told to, or
    // if it must not hope for the answers that got lost.
    void connect();
    void become_another();

    // Each a statement; its answer. In a block it goes on only after `yes` and `no`.
    Outcome try_lease(int lease, Usec ttl);
    Outcome try_any(const std::vector<int> &leases, Usec ttl);
    Outcome acquire(int lease, Usec ttl, Usec wait);
    Outcome renew(int lease, Usec ttl, bool by_token);
    Outcome renew_all(const std::vector<int> &leases, Usec ttl);
    Outcome release(int lease, bool by_token);
    Outcome release_and_keep(int lease, Usec keep);
    Outcome look(int lease);
    Outcome watch(int lease, Usec wait);
    Outcome attach(int lease);
    bool detach(int lease);
    Outcome fence(int lease);

    // Reads how many writes there are; -1: it failed. Then adds one, having read that.
    std::int64_t read_register(int lease);
    Outcome write(int lease, std::int64_t before);

    // Blocks, at any isolation level. False: it failed, and the block with it.
    bool begin();
    bool savepoint();
    bool rollback_to_savepoint();
    bool commit();
    bool prepare();
    void end_prepared(bool commit);
    void rollback();

    // After a try that was turned down: whether it left anything in this block.
    void check_leftovers();

    bool plain(const std::string &sql, const Parameters &parameters = {});
    Token token(int lease) const { return tokens_.at(lease); }
    bool in_block() const { return transaction_.id != 0; }
    bool lost() const { return lost_; }

private:
    Operation start(Kind kind, int lease, Usec length = -1, Token token = 0);
    // With one column, the token: no row is no; NULL is `null`.
    Outcome finish(Operation &operation, const Answer &answer, Outcome null = Outcome::no);
    Outcome finish(Operation &operation, Outcome outcome);
    Outcome call(Operation operation, const std::string &sql, const Parameters &parameters,
                 Outcome null = Outcome::no);
    Answer ask(const std::string &sql, const Parameters &parameters);
    // Of several operations of one statement, by the rows of names and tokens.
    Outcome finish_many(std::vector<Operation> &operations, const Answer &answer, Outcome unnamed);
    Answer ask_for_end(const std::string &sql);
    void leave_block();
    void end_transaction(Outcome outcome);
    const std::string &some_level() const;
    std::string gid() const;
    void tell_left(Message::Type type, const std::optional<std::string> &what) const;
    void surprise(const Answer &answer, const std::string &sql) const;

    const Plan &plan_;
    const Teller &teller_;
    Shared &shared_;
    Dice &dice_;
    std::unique_ptr<Session> session_;
    bool over_relay_ = false;
    bool lost_ = false;
    int contender_ = 0;
    std::int64_t last_id_ = 0;
    Transaction transaction_{}; // id 0: none is open
    std::int64_t last_transaction_ = 0;
    std::vector<Token> tokens_; // of each lease, the last that it was told
    std::vector<Operation> since_savepoint_;
    bool has_savepoint_ = false;
};

} // namespace chaos

#endif
