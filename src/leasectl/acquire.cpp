#include "acquire.hpp"

#include "duration.hpp"
#include "exit_status.hpp"
#include "log.hpp"

#include <unistd.h>

namespace leasectl {

namespace {

constexpr const char *try_query =
    "SELECT @.lease_token($1, $2) WHERE @.lease_try($1, $2, $3::pg_catalog.interval)";
constexpr const char *acquire_query =
    "CALL @.lease_acquire($1, $2, $3::pg_catalog.interval, $4::pg_catalog.interval, NULL)";
constexpr const char *confirm_query = "SELECT @.lease_renew($1, $2, $3::pg_catalog.interval, $4)";
constexpr const char *release_query = "SELECT @.lease_release($1, $2, $3::pg_catalog.interval, $4)";

constexpr Usec reconnect_pause = 500 * millisecond;
// That long after the end of a wait the server's "no" has to be here.
constexpr Usec slack = 5 * second;
// How long an answer is waited for that we no longer want.
constexpr Usec farewell = 2 * second;

// Errors that trying again does not mend: there is no such function, no right to it, ...
bool is_final(const Answer &answer) {
    return answer.is_callers_fault() || answer.sqlstate.compare(0, 2, "42") == 0 ||
           answer.sqlstate.compare(0, 2, "0A") == 0;
}

} // namespace

Acquisition::Acquisition(RunOptions &options, Session &session, Signals &signals)
    : options_(options), session_(session), signals_(signals), open_at_(boot_now()) {
    tenure_.name = options.name;
    tenure_.owner = options.owner;
    tenure_.ttl = options.ttl;
    tenure_.grace = options.grace;
    until_ = options.wait == never ? never : open_at_ + options.wait;
}

int Acquisition::run() {
    Poller poller;
    while (!status_) {
        heed_signals();
        if (const std::optional<Answer> answer = session_.advance())
            heed(*answer);
        if (!status_)
            advance();
        if (!status_)
            poller.wait({session_.wanted(), {signals_.fd(), POLLIN, 0}}, next());
    }
    return *status_;
}

void Acquisition::end(int status, const std::string &message) {
    if (status_)
        return;
    status_ = status;
    if (!message.empty() && (status != exit_not_acquired || options_.verbose))
        say(message);
}

void Acquisition::advance() {
    const Usec now = boot_now();
    if (signal_ != 0 && (session_.state() != Session::State::busy || now >= signal_at_ + farewell))
        end(ended_by(signal_), "");
    else if (session_.state() == Session::State::closed)
        reconnect(now);
    else if (session_.state() == Session::State::idle)
        ask(now);
    else if (session_.state() == Session::State::opening && options_.wait > 0 && now >= until_)
        end(exit_unavailable, trouble_.empty() ? "no connection within the wait" : trouble_);
}

void Acquisition::reconnect(Usec now) {
    if (supply_password(session_, options_.connection)) {
        session_.open();
        return;
    }
    // An answer was lost: to ask again, as the same owner, is the way to know it.
    const Usec last_chance = may_be_held_ ? sent_at_ + std::min(tenure_.ttl, slack) : until_;
    if (!trouble_.empty() && now >= std::max(until_, last_chance)) {
        end(exit_unavailable, trouble_);
        return;
    }
    if (now < open_at_)
        return;
    session_.open();
    open_at_ = now + reconnect_pause;
}

void Acquisition::ask(Usec now) {
    const std::string ttl = interval_literal(tenure_.ttl);
    sent_at_ = now;
    if (confirm_) {
        asked_ = Asked::confirmation;
        session_.send(confirm_query, {tenure_.name, tenure_.owner, ttl, tenure_.token},
                      now + tenure_.ttl / 2);
        return;
    }
    asked_ = Asked::grant;
    if (until_ <= now) {
        session_.send(try_query, {tenure_.name, tenure_.owner, ttl}, now + tenure_.ttl);
        return;
    }
    Value wait;
    if (until_ != never)
        wait = interval_literal(until_ - now);
    session_.send(acquire_query, {tenure_.name, tenure_.owner, ttl, wait},
                  until_ == never ? never : until_ + slack);
}

void Acquisition::heed(const Answer &answer) {
    if (!answer.fine) {
        heed_failure(answer);
    } else if (asked_ == Asked::grant) {
        heed_grant(answer);
    } else if (answer.is_true()) {
        count_from_request();
    } else { // over before we knew of it
        confirm_ = false;
        may_be_held_ = false;
        if (boot_now() >= until_)
            end(exit_not_acquired, "the lease was granted too late");
    }
}

void Acquisition::heed_grant(const Answer &answer) {
    may_be_held_ = false;
    if (answer.rows.empty() || !answer.rows[0][0]) {
        end(exit_not_acquired, quoted(tenure_.name) + " is held by another");
        return;
    }
    tenure_.token = *answer.rows[0][0];
    may_be_held_ = true;
    if (signal_ != 0)
        end(ended_by(signal_), "");
    else
        count_from_request();
}

// A grant came some time between the request and its answer. Where that is long, a renewal
// tells better.
void Acquisition::count_from_request() {
    tenure_.counted_from = sent_at_;
    confirm_ = boot_now() - sent_at_ > tenure_.ttl / 3;
    if (!confirm_)
        end(exit_ok, "");
}

void Acquisition::heed_failure(const Answer &answer) {
    const bool was_asked = asked_ != Asked::nothing;
    asked_ = Asked::nothing;
    may_be_held_ = may_be_held_ || (was_asked && answer.disconnected);
    if (signal_ != 0) {
        end(ended_by(signal_), "");
    } else if (is_final(answer)) {
        end(answer.is_callers_fault() ? exit_usage : exit_unavailable, answer.error);
    } else {
        if (trouble_ != answer.error && boot_now() < until_ && !session_.may_ask_password())
            say("tries again: " + answer.error);
        trouble_ = answer.error;
        session_.close();
    }
}

void Acquisition::heed_signals() {
    for (const int each : signals_.take()) {
        if (each == SIGTSTP)
            kill(getpid(), SIGSTOP);
        if (!signals_.asks_to_end(each))
            continue;
        if (signal_ != 0)
            end(ended_by(each), ""); // said twice
        signal_ = each;
        signal_at_ = boot_now();
        session_.cancel_request();
    }
}

Usec Acquisition::next() const {
    Usec next = session_.due();
    if (session_.state() == Session::State::closed)
        next = open_at_;
    if (session_.state() == Session::State::opening && options_.wait > 0)
        next = std::min(next, until_);
    return signal_ != 0 ? std::min(next, signal_at_ + farewell) : next;
}

namespace {

// A release under way.
class Release {
public:
    Release(Session &session, const Tenure &tenure, std::optional<Usec> keep, Usec until)
        : session_(session), tenure_(tenure), keep_(keep), until_(until) {}

    std::optional<bool> run() {
        Poller poller;
        while (!is_hopeless_ && boot_now() < until_) {
            const std::optional<Answer> answer = session_.advance();
            if (answer && asked_ && answer->fine)
                return answer->is_true();
            if (answer)
                heed(*answer);
            const Usec next = advance();
            poller.wait({session_.wanted()}, std::min(next, until_));
        }
        say("could not release " + quoted(tenure_.name) +
            ", it ends with its time to live: " + trouble_);
        return std::nullopt;
    }

private:
    // Also the answer to a renewal that was under way, which is of no interest any more.
    void heed(const Answer &answer) {
        asked_ = false;
        if (answer.fine)
            return;
        trouble_ = answer.error;
        is_hopeless_ = is_final(answer);
        session_.close();
    }

    // Returns when it has to be called again.
    Usec advance() {
        const Usec now = boot_now();
        if (session_.state() == Session::State::closed && now >= open_at_) {
            session_.open();
            open_at_ = now + reconnect_pause;
        }
        if (session_.state() == Session::State::idle) {
            asked_ = true;
            session_.send(release_query,
                          {tenure_.name, tenure_.owner,
                           keep_ ? Value(interval_literal(*keep_)) : Value(),
                           tenure_.token.empty() ? Value() : Value(tenure_.token)},
                          until_);
        }
        return session_.state() == Session::State::closed ? open_at_ : session_.due();
    }

    Session &session_;
    const Tenure &tenure_;
    std::optional<Usec> keep_;
    Usec until_;
    Usec open_at_ = 0;
    bool asked_ = false;
    bool is_hopeless_ = false;
    std::string trouble_ = "the server does not answer";
};

} // namespace

std::optional<bool> release(Session &session, const Tenure &tenure, std::optional<Usec> keep,
                            Usec until) {
    return Release(session, tenure, keep, until).run();
}

} // namespace leasectl
