#include "renewals.hpp"

#include "duration.hpp"
#include "log.hpp"

namespace leasectl {

namespace {

constexpr const char *renew_query = "SELECT @.lease_renew($1, $2, $3::pg_catalog.interval, $4)";
constexpr Usec reconnect_pause = 200 * millisecond;

} // namespace

Renewals::Renewals(Session &session, Tenure &tenure, bool verbose)
    : session_(session), tenure_(tenure), verbose_(verbose) {}

Renewals::News Renewals::advance() {
    News news = News::none;
    if (const std::optional<Answer> answer = session_.advance())
        news = heed(*answer);
    const Usec now = boot_now();
    if (session_.state() == Session::State::closed && now >= open_at_) {
        session_.open();
        at_once_ = true;
    }
    if (session_.state() == Session::State::idle && (at_once_ || now >= tenure_.renew_at())) {
        at_once_ = false;
        sent_at_ = boot_now();
        session_.send(renew_query,
                      {tenure_.name, tenure_.owner, interval_literal(tenure_.ttl), tenure_.token},
                      sent_at_ + tenure_.patience());
    }
    return news;
}

Renewals::News Renewals::heed(const Answer &answer) {
    const Usec now = boot_now();
    if (!answer.fine) {
        if (answer.in_vain > 0)
            latency_.add(answer.in_vain); // it takes that long at least
        start_over(answer.error, reconnect_pause);
        return News::none;
    }
    if (!answer.is_true())
        return News::lost;
    least_left_ = std::min(least_left_, tenure_.deadline() - now);
    latency_.add(now - sent_at_);
    tenure_.counted_from = sent_at_;
    if (!trouble_.empty())
        say("renewed again, after: " + trouble_);
    trouble_.clear();
    return News::renewed;
}

// A lost connection is tried again at once if it was good until then.
void Renewals::start_over(const std::string &why, Usec pause) {
    if (trouble_.empty() || (verbose_ && trouble_ != why))
        say("could not renew, tries again: " + why);
    const bool first = trouble_.empty();
    trouble_ = why;
    session_.close();
    open_at_ = first ? boot_now() : boot_now() + pause;
}

Usec Renewals::next() const {
    switch (session_.state()) {
    case Session::State::closed:
        return open_at_;
    case Session::State::idle:
        return tenure_.renew_at();
    case Session::State::busy:
    case Session::State::opening:
        break;
    }
    return session_.due();
}

} // namespace leasectl
