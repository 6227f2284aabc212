#include "tenures.hpp"

#include <algorithm>
#include <stdexcept>

namespace chaos {

Fates::Fates(const std::vector<Transaction> &transactions) {
    for (const Transaction &transaction : transactions)
        transactions_[{transaction.contender, transaction.id}] = &transaction;
}

Fate Fates::of(const Operation &operation) const {
    if (operation.undone || operation.outcome == Outcome::no ||
        operation.outcome == Outcome::failed)
        return {};
    const bool told = operation.outcome == Outcome::yes;
    if (operation.transaction == 0)
        return {told ? Effect::sure : Effect::possible, operation.asked, operation.answered};
    const auto found = transactions_.find({operation.contender, operation.transaction});
    if (found == transactions_.end())
        return {};
    const Transaction &transaction = *found->second;
    if (transaction.outcome == Outcome::no || transaction.outcome == Outcome::failed)
        return {};
    const bool committed = transaction.outcome == Outcome::yes;
    return {told && committed ? Effect::sure : Effect::possible, transaction.asked,
            committed ? transaction.answered : never};
}

bool saw_live(const Operation &operation) {
    return operation.outcome == Outcome::yes && operation.token != 0 &&
           operation.kind != Kind::wrote && operation.kind != Kind::broken;
}

bool is_take(Kind kind) {
    return kind == Kind::tried || kind == Kind::acquired;
}

Tenures::Tenures(const Fates &fates, const std::vector<const Operation *> &operations) {
    for (const Operation *operation : operations) {
        if (saw_live(*operation)) {
            Tenure tenure;
            tenure.token = operation->token;
            tenures_.push_back(tenure);
        }
        if (operation->kind == Kind::broken && fates.of(*operation).effect != Effect::none)
            breaks_.push_back({operation->asked, operation->answered});
    }
    const auto by_token = [](const Tenure &a, const Tenure &b) { return a.token < b.token; };
    std::sort(tenures_.begin(), tenures_.end(), by_token);
    const auto same = [](const Tenure &a, const Tenure &b) { return a.token == b.token; };
    tenures_.erase(std::unique(tenures_.begin(), tenures_.end(), same), tenures_.end());
    for (const Operation *operation : operations)
        if (saw_live(*operation))
            note(*operation, fates.of(*operation));
    look_around();
}

void Tenures::note(const Operation &operation, const Fate &fate) {
    Tenure &tenure = of(operation.token);
    tenure.last_seen = std::max(tenure.last_seen, operation.asked);
    if (fate.effect == Effect::sure) {
        tenure.begun_by = std::min(tenure.begun_by, fate.by);
        // In a block that committed, it may be the transaction's own grant that was seen.
        tenure.decided_by = std::min(tenure.decided_by, operation.answered);
    }
    if (!is_take(operation.kind))
        return;
    if (tenure.contender == 0 || (fate.effect == Effect::sure && tenure.grant == nullptr))
        tenure.contender = operation.contender;
    // The first that was told this token; extensions come later.
    if (fate.effect == Effect::sure &&
        (tenure.grant == nullptr || operation.asked < tenure.grant->asked))
        tenure.grant = &operation;
}

void Tenures::look_around() {
    for (std::size_t i = 1; i < tenures_.size(); i++)
        tenures_[i].earlier_seen =
            std::max(tenures_[i - 1].earlier_seen, tenures_[i - 1].last_seen);
    for (std::size_t i = tenures_.size(); i > 1; i--) {
        const Tenure &later = tenures_[i - 1];
        tenures_[i - 2].later_begun_by = std::min(later.later_begun_by, later.begun_by);
    }
}

Tenure &Tenures::of(Token token) {
    const auto found =
        std::lower_bound(tenures_.begin(), tenures_.end(), token,
                         [](const Tenure &tenure, Token sought) { return tenure.token < sought; });
    if (found == tenures_.end() || found->token != token)
        throw std::logic_error("no such tenure");
    return *found;
}

Usec Tenures::left_of(const Guarantee &promised, Usec at, const ServerClock &clock) const {
    const Span lasting{promised.since, at};
    return may_be_broken(lasting) ? 0 : std::max<Usec>(0, promised.until - clock.most(lasting));
}

bool Tenures::may_be_broken(Span span) const {
    return std::any_of(breaks_.begin(), breaks_.end(),
                       [&span](const Span &one) { return one.overlaps(span); });
}

} // namespace chaos
