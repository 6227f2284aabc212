// A run, and many runs together, in words.
#ifndef LEASE_CHAOS_REPORT_HPP
#define LEASE_CHAOS_REPORT_HPP

#include "checker.hpp"
#include "run.hpp"

namespace chaos {

// The first of the violations; and the whole history, a line each in the order of time, to a file
// that KEEP=1 leaves there: to look into what went wrong.
void tell(const Plan &plan, const Run &run, const std::vector<Violation> &violations);

// Adds up, checks and tells.
class Report {
public:
    // Checks the run, and gives what was violated.
    std::vector<Violation> add(const Run &run);

    std::size_t violations() const { return violations_; }
    std::int64_t takeovers() const { return takeovers_; }
    int count(const std::string &fault) const;
    // A few lines on all that was added.
    std::string in_words() const;

private:
    int runs_ = 0;
    Usec length_ = 0;
    std::size_t operations_ = 0;
    std::size_t writes_ = 0;
    std::int64_t grants_ = 0;
    std::int64_t takeovers_ = 0;
    std::size_t violations_ = 0;
    Usec longest_pause_ = 0;
    std::map<std::string, int> faults_;
    std::map<Promise, int> broken_;
    std::vector<Usec> tries_;
    std::vector<Usec> hand_overs_;
};

} // namespace chaos

#endif
