// What one contender went through with one lease, in the order in which it asked: when its tenures
// were sure to last, when they were sure to be over, and whether it was told so.
#ifndef LEASE_CHAOS_WALK_HPP
#define LEASE_CHAOS_WALK_HPP

#include "checker.hpp"
#include "tenures.hpp"

namespace chaos {

class Walk {
public:
    Walk(const History &history, const Fates &fates, Tenures &tenures,
         std::vector<Violation> &found)
        : history_(history), fates_(fates), clock_(history.shifts), tenures_(tenures),
          found_(found) {}

    // The next operation. Guarantees go to the tenures, what should not have been to `found`.
    void see(const Operation &operation);
    // There are no more.
    void end() { end_guarantee(never); }

private:
    void live(const Operation &operation, const Fate &fate);
    void denied(const Operation &operation);
    void unclear(const Operation &operation, const Fate &fate);

    void check_not_over(const Operation &operation);
    void begin(const Operation &operation);
    void extend(const Operation &operation, const Fate &fate);
    void release(const Operation &operation, Effect effect);
    Span when(const Operation &operation) const;
    void end_guarantee(Usec at);
    bool crashed_within(Span span) const;

    const History &history_;
    const Fates &fates_;
    ServerClock clock_;
    Tenures &tenures_;
    std::vector<Violation> &found_;

    Token token_ = 0;             // that it saw last
    Guarantee sure_{};            // of that tenure; `since` is never: none
    Usec possible_ = 0;           // it may last until then, on the server's clock
    Usec released_ = 0;           // it was released later than this, for sure; 0: not
    bool unclear_take_ = false;   // one may have made any tenure that comes to light later
    bool grant_is_known_ = false; // of that tenure: when it was acquired
    bool attached_ = false;       // perhaps: then the server renews and releases it
    bool haunted_ = false;        // a call whose answer got lost may still be done at any time
};

} // namespace chaos

#endif
