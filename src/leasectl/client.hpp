// A session for commands that have nothing to do while they wait for an answer.
#pragma once

#include "session.hpp"
#include "signals.hpp"

namespace leasectl {

class Client {
public:
    explicit Client(ConnectionOptions &options, bool needs_extension = true);

    // From now on TERM, INT, HUP and QUIT cancel what the server is doing, and then end leasectl.
    void cancel_by_signals() { signals_.emplace(); }

    // Each throws Failure: exit_usage where the server finds the request wrong, else
    // exit_unavailable.
    void connect();
    std::vector<Row> query(const std::string &sql, const std::vector<Value> &parameters = {});

    // SQL errors come back, too; Failure only when the connection is lost. No answer by then
    // counts as lost.
    Answer ask(const std::string &sql, const std::vector<Value> &parameters, Usec answer_by);

    bool is_connected() const { return session_.state() == Session::State::idle; }

private:
    void heed_signals();

    ConnectionOptions &options_;
    Session session_;
    Poller poller_;
    std::optional<Signals> signals_;
    int signal_ = 0;
    Usec give_up_at_ = never;
};

} // namespace leasectl
