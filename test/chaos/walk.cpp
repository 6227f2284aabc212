#include "walk.hpp"

#include "text.hpp"

#include <algorithm>

namespace chaos {

void Walk::see(const Operation &operation) {
    const Fate fate = fates_.of(operation);
    if (saw_live(operation) && operation.kind != Kind::watched)
        live(operation, fate);
    else if (operation.outcome == Outcome::no)
        denied(operation);
    else if (operation.outcome != Outcome::failed) // its own block saw it, even if that rolled back
        unclear(operation, fate);
}

void Walk::live(const Operation &operation, const Fate &fate) {
    if (operation.token != token_)
        begin(operation);
    else
        check_not_over(operation);
    // Only after a crash, which may have forgotten a release.
    Tenure &tenure = tenures_.of(token_);
    tenure.kept.before = std::min(tenure.kept.before, operation.asked);
    switch (operation.kind) {
    case Kind::tried:
    case Kind::acquired:
    case Kind::renewed:
        extend(operation, fate);
        break;
    case Kind::released:
        release(operation, fate.effect);
        break;
    case Kind::attached:
        end_guarantee(operation.asked);
        attached_ = true;
        break;
    default:
        break;
    }
}

void Walk::check_not_over(const Operation &operation) {
    if (attached_ || haunted_)
        return;
    if (released_ != 0 && !crashed_within({released_, operation.answered}))
        found_.push_back({Promise::expired_is_lost, text(told(operation), ": it was released ",
                                                         operation.asked - released_, " us ago")});
    else if (clock_.least({operation.asked, operation.answered}) > possible_)
        found_.push_back(
            {Promise::expired_is_lost,
             text(told(operation), ": it had run out ",
                  clock_.least({operation.asked, operation.answered}) - possible_, " us ago")});
}

void Walk::begin(const Operation &operation) {
    end_guarantee(operation.asked);
    token_ = operation.token;
    released_ = 0;
    // What made it is unknown, unless this did; and whether it is attached.
    const bool granted = tenures_.of(token_).grant == &operation;
    possible_ = granted ? 0 : never;
    attached_ = attached_ && !granted;
    grant_is_known_ = granted && !unclear_take_;
}

// When it was done, as far as that is known: a grant came later than the last sight of an earlier
// tenure, however long it was waited for.
Span Walk::when(const Operation &operation) const {
    const Tenure &tenure = tenures_.of(operation.token);
    Span span{operation.asked, operation.answered};
    if (tenure.grant == &operation)
        span.from = std::min(std::max(span.from, tenure.earlier_seen), span.to);
    return span;
}

void Walk::extend(const Operation &operation, const Fate &fate) {
    const Effect effect = fate.effect;
    const Usec least = clock_.least(when(operation)) + operation.length;
    const Usec most = clock_.most(when(operation)) + operation.length;
    Guarantee next = sure_;
    end_guarantee(operation.asked);
    if (effect == Effect::sure)
        possible_ = most;
    else if (possible_ != never)
        possible_ = std::max(possible_, most);

    if (effect == Effect::sure) {
        next = {operation.asked, never, least, fate.by};
    } else { // rolled back, perhaps, but its own transaction saw it
        next.until = std::min(next.until, least);
        next.known_by = std::max(next.known_by, operation.asked);
    }
    next.since = next.since == never ? never : operation.asked;
    if (next.since != never && !attached_ && !haunted_)
        sure_ = next;
}

void Walk::release(const Operation &operation, Effect effect) {
    end_guarantee(operation.asked);
    if (effect != Effect::sure)
        return;
    released_ = operation.asked;
    Tenure &tenure = tenures_.of(operation.token);
    if (operation.length < 0 || !grant_is_known_)
        return;
    const Span granted{tenure.grant->asked, tenure.grant->answered};
    tenure.kept = {operation.asked, never, clock_.least(granted) + operation.length};
}

void Walk::end_guarantee(Usec at) {
    if (sure_.since == never)
        return;
    sure_.before = at;
    tenures_.of(token_).guarantees.push_back(sure_);
    sure_ = {};
}

void Walk::denied(const Operation &operation) {
    const bool about_last = operation.token == 0 || operation.token == token_;
    // Who waits in vain may be kept from its own lease by somebody who is busy on it.
    if (!about_last || operation.kind == Kind::acquired || operation.kind == Kind::watched ||
        sure_.since == never || haunted_)
        return;
    if (const Usec left = tenures_.left_of(sure_, operation.answered, clock_); left > 0)
        found_.push_back(
            {Promise::holder_is_told_so,
             text(told(operation), " is denied: token ", token_, " lasts for ", left, " us more")});
}

void Walk::unclear(const Operation &operation, const Fate &fate) {
    const bool changes = is_take(operation.kind) || operation.kind == Kind::renewed ||
                         operation.kind == Kind::released || operation.kind == Kind::attached;
    if (!changes)
        return;
    end_guarantee(operation.asked);
    token_ = 0; // the next sight of it begins anew
    unclear_take_ = unclear_take_ || is_take(operation.kind);
    attached_ = attached_ || operation.kind == Kind::attached;
    if (fate.effect == Effect::possible && operation.answered == never)
        haunted_ = true;
}

bool Walk::crashed_within(Span span) const {
    return std::any_of(history_.crashes.begin(), history_.crashes.end(),
                       [&span](const Span &crash) { return crash.overlaps(span); });
}

} // namespace chaos
