// Keeps a tenure alive over a connection that may come and go.
#pragma once

#include "latency.hpp"
#include "session.hpp"
#include "tenure.hpp"

namespace leasectl {

class Renewals {
public:
    enum class News {
        none,
        renewed, // the tenure counts from a later moment
        lost,    // the server says that it is over
    };

    Renewals(Session &session, Tenure &tenure, bool verbose);

    // Does what is due, never waits.
    News advance();

    Usec next() const; // when something will be due without any answer
    const Latency &latency() const { return latency_; }
    Usec least_left() const { return least_left_; } // at the answer of a renewal; never: none yet
    const std::string &trouble() const { return trouble_; } // the last error; empty: all is well

private:
    News heed(const Answer &answer);
    void start_over(const std::string &why, Usec pause);

    Session &session_;
    Tenure &tenure_;
    bool verbose_;
    Usec sent_at_ = 0;
    Usec open_at_ = 0;     // with a closed session
    bool at_once_ = false; // after a trouble nobody waits for a third of the TTL
    Latency latency_;
    Usec least_left_ = never;
    std::string trouble_;
};

} // namespace leasectl
