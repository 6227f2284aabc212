// What a history says about the tenures of one lease.
// Invariant: whatever is not known for certain (an answer or COMMIT that got lost, say) is taken
// to be as harmless as it can have been.
#ifndef LEASE_CHAOS_TENURES_HPP
#define LEASE_CHAOS_TENURES_HPP

#include "history.hpp"

#include <map>
#include <utility>
#include <vector>

namespace chaos {

// What became of an operation.
enum class Effect { none, possible, sure };
struct Fate {
    Effect effect = Effect::none;
    Usec commit_asked = never;
    Usec by = never; // by then it was done, if it is sure
};

class Fates {
public:
    explicit Fates(const std::vector<Transaction> &transactions);
    Fate of(const Operation &operation) const;

private:
    std::map<std::pair<int, std::int64_t>, const Transaction *> transactions_;
};

// Whether the operation saw the tenure of its token live.
bool saw_live(const Operation &operation);
bool is_take(Kind kind);

// From `since` until its holder asks for a change at `before`, a tenure lasts until `until` at
// least, on the server's clock; unless somebody breaks it.
struct Guarantee {
    Usec since = never;
    Usec before = never;
    Usec until = 0;
    Usec known_by = never; // what others see is older before that
};

struct Tenure {
    Token token = 0;
    int contender = 0;                // 0: the history does not tell
    const Operation *grant = nullptr; // that made it, for sure; null: not known
    Usec last_seen = 0;               // it was live later than this
    Usec decided_by = never;          // the grant was made by then
    Usec begun_by = never;            // and committed by then
    std::vector<Guarantee> guarantees;
    Guarantee kept{}; // after its release, nobody gets the lease
    // Of the tenures with smaller tokens, and of those with larger ones:
    Usec earlier_seen = 0;
    Usec later_begun_by = never;
};

class Tenures {
public:
    // Of the operations on one lease, in any order.
    Tenures(const Fates &fates, const std::vector<const Operation *> &operations);

    // In the order of their tokens.
    std::vector<Tenure> &all() { return tenures_; }
    // Of a token that was seen live.
    Tenure &of(Token token);

    // For how long at least the guarantee has still to run at that moment. 0: somebody may have
    // broken it; or the clock passed its end, and somebody else may have had the lease since, even
    // if the clock was set back.
    Usec left_of(const Guarantee &promised, Usec at, const ServerClock &clock) const;

private:
    bool may_be_broken(Span span) const;
    void note(const Operation &operation, const Fate &fate);
    void look_around();

    std::vector<Tenure> tenures_;
    std::vector<Span> breaks_;
};

} // namespace chaos

#endif
