#include "report.hpp"

#include "measures.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>

namespace chaos {

namespace {

void append(std::vector<Usec> &all, const std::vector<Usec> &more) {
    all.insert(all.end(), more.begin(), more.end());
}

void write_down(const History &history, const std::string &path) {
    constexpr const char *outcomes[] = {"unknown", "yes", "no", "failed"};
    std::multimap<Usec, std::string> lines;
    for (const Operation &one : history.operations)
        lines.emplace(one.asked, text(told(one), ", for ", one.length, ", to ", one.answered, ": ",
                                      outcomes[static_cast<int>(one.outcome)], ", transaction ",
                                      one.transaction, one.undone ? ", undone" : ""));
    for (const Transaction &one : history.transactions)
        lines.emplace(one.asked,
                      text("end of ", one.id, " of contender ", one.contender, " at ", one.asked,
                           " to ", one.answered, ": ", outcomes[static_cast<int>(one.outcome)]));
    for (const Shift &one : history.shifts)
        lines.emplace(one.from, text("clock ", one.offset, " at ", one.from, " to ", one.to));
    for (const Span &one : history.crashes)
        lines.emplace(one.from, text("crash at ", one.from, " to ", one.to));
    std::ofstream file(path);
    for (const auto &[at, line] : lines)
        file << line << "\n";
}

} // namespace

void tell(const Plan &plan, const Run &run, const std::vector<Violation> &violations) {
    if (violations.empty())
        return;
    write_down(run.history, text(std::getenv("TMPDIR"), "/history.", plan.seed));
    constexpr std::size_t most = 20;
    for (std::size_t i = 0; i < std::min(most, violations.size()); i++)
        std::cout << "  " << name_of(violations[i].promise) << ": " << violations[i].what << "\n";
    std::cout << std::flush;
}

std::vector<Violation> Report::add(const Run &run) {
    std::vector<Violation> found = check(run.history);
    runs_++;
    length_ += run.length;
    operations_ += run.history.operations.size();
    writes_ += run.history.writes.size();
    const Fates fates(run.history.transactions);
    grants_ += count_grants(run.history, fates);
    takeovers_ += run.takeovers;
    violations_ += found.size();
    longest_pause_ = std::max(longest_pause_, run.longest_pause);
    for (const auto &[name, count] : run.faults)
        faults_[name] += count;
    for (const auto &[promise, count] : count_by_promise(found))
        broken_[promise] += count;
    append(tries_, times_of_tries(run.history));
    append(hand_overs_, hand_overs(run.history, fates));
    return found;
}

int Report::count(const std::string &fault) const {
    const auto found = faults_.find(fault);
    return found != faults_.end() ? found->second : 0;
}

std::string Report::in_words() const {
    std::string words =
        text(runs_, " runs, ", length_ / second, " s: ", operations_, " operations, ", grants_,
             " grants, ", takeovers_, " takeovers, ", writes_, " fenced writes; no grant for ",
             longest_pause_ / millisecond, " ms at the most\n", "  in peace: p99 of ",
             tries_.size(), " tries ", percentile(tries_, 99), " us, median of ",
             hand_overs_.size(), " hand-overs ", percentile(hand_overs_, 50), " us\n  faults: ");
    const char *separator = "";
    for (const auto &[name, count] : faults_) {
        words += text(separator, name, " ", count);
        separator = ", ";
    }
    words += text(faults_.empty() ? "none" : "", "\n  violations: ", violations_, "\n");
    for (const auto &[promise, count] : broken_)
        words += text("    ", name_of(promise), ": ", count, "\n");
    return words;
}

} // namespace chaos
