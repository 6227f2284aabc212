// Taking a lease, and giving it back.
#pragma once

#include "run.hpp"
#include "session.hpp"
#include "signals.hpp"
#include "tenure.hpp"

namespace leasectl {

class Acquisition {
public:
    Acquisition(RunOptions &options, Session &session, Signals &signals);

    // exit_ok: held. Else the exit status; with may_be_held() the lease is to be released all the
    // same, since an answer was lost.
    int run();

    const Tenure &tenure() const { return tenure_; }
    bool may_be_held() const { return may_be_held_; }

private:
    enum class Asked { nothing, grant, confirmation };

    void advance();
    void reconnect(Usec now);
    void ask(Usec now);
    void heed(const Answer &answer);
    void heed_grant(const Answer &answer);
    void heed_failure(const Answer &answer);
    void heed_signals();
    void count_from_request();
    void end(int status, const std::string &message);
    Usec next() const;

    RunOptions &options_;
    Session &session_;
    Signals &signals_;
    Tenure tenure_;
    Usec until_;   // when the wait is over
    Usec open_at_; // with a closed session
    Usec sent_at_ = 0;
    Asked asked_ = Asked::nothing;
    bool confirm_ = false; // granted, but too long ago to know since when
    bool may_be_held_ = false;
    int signal_ = 0; // the one that ends the wait
    Usec signal_at_ = 0;
    std::optional<int> status_;
    std::string trouble_;
};

// Ends the tenure, in bounded time. What the server says against it (expired, held by another) is
// told as a warning. True: it was ours until now. Nothing: nobody knows.
std::optional<bool> release(Session &session, const Tenure &tenure, std::optional<Usec> keep,
                            Usec until);

} // namespace leasectl
