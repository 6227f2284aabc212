#include "client.hpp"

#include "exit_status.hpp"

#include <algorithm>

namespace leasectl {

namespace {

constexpr Usec patience = 10 * second;
constexpr Usec cancel_time = 2 * second;

[[noreturn]] void fail(const Answer &answer) {
    throw Failure(answer.is_callers_fault() ? exit_usage : exit_unavailable, answer.error);
}

} // namespace

Client::Client(ConnectionOptions &options, bool needs_extension)
    : options_(options), session_(options, patience, needs_extension) {
    default_connect_timeout(patience);
    if (options_.ask_first && !options_.password)
        ask_password(options_);
}

void Client::connect() {
    session_.open();
    for (;;) {
        if (const std::optional<Answer> answer = session_.advance()) {
            if (!supply_password(session_, options_))
                fail(*answer);
            session_.open();
        }
        if (is_connected())
            return;
        poller_.wait({session_.wanted()}, session_.due());
    }
}

Answer Client::ask(const std::string &sql, const std::vector<Value> &parameters, Usec answer_by) {
    if (!is_connected())
        connect();
    session_.send(sql, parameters, answer_by);
    for (;;) {
        heed_signals();
        if (std::optional<Answer> answer = session_.advance()) {
            if (!answer->fine && signal_ != 0)
                throw Failure(ended_by(signal_), "canceled");
            if (answer->disconnected)
                fail(*answer);
            return *std::move(answer);
        }
        poller_.wait({session_.wanted(), {signals_ ? signals_->fd() : -1, POLLIN, 0}},
                     std::min(session_.due(), give_up_at_));
    }
}

void Client::heed_signals() {
    if (!signals_)
        return;
    for (const int each : signals_->take()) {
        if (!signals_->asks_to_end(each))
            continue;
        signal_ = each;
        give_up_at_ = boot_now() + cancel_time;
        session_.cancel_request();
    }
    if (boot_now() >= give_up_at_)
        throw Failure(ended_by(signal_), "the server does not confirm that it has canceled");
}

std::vector<Row> Client::query(const std::string &sql, const std::vector<Value> &parameters) {
    Answer answer = ask(sql, parameters, never);
    if (!answer.fine)
        fail(answer);
    return std::move(answer.rows);
}

} // namespace leasectl
