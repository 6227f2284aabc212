#include "run.hpp"

#include "acquire.hpp"
#include "command.hpp"
#include "duration.hpp"
#include "exit_status.hpp"
#include "guard.hpp"
#include "log.hpp"
#include "renewals.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <unistd.h>

namespace leasectl {

namespace {

constexpr Usec release_time = 5 * second;
constexpr Usec group_pace = 20 * millisecond; // nobody tells when a group has become empty
// Whom KILL has not ended by then cannot be ended (another user's, or deep in the kernel).
constexpr Usec patience = second;

// One run, from the grant to the end of the command.
class Supervision {
public:
    Supervision(const RunOptions &options, Session &session, Signals &signals, Tenure tenure);

    int run();

private:
    void heed_signals();
    void heed_renewals();
    void heed_command();
    void heed_time();
    void lose(const std::string &why);
    void end_group(Usec kill_at);
    bool group_is_gone() const;
    void keep_guard();
    void release_lease();
    void report() const;
    int exit_status() const;
    Usec next() const;

    const RunOptions &options_;
    Session &session_;
    Signals &signals_;
    Tenure tenure_;
    Renewals renewals_;
    Command command_;
    std::unique_ptr<Guard> guard_;
    Usec kill_at_ = never; // what is left of the group then
    Usec gone_by_ = never;
    bool lost_ = false;
    bool over_ = false; // the server said so
};

std::vector<std::string> environment_of(const Tenure &tenure) {
    return {"LEASE_NAME=" + tenure.name, "LEASE_OWNER=" + tenure.owner,
            "LEASE_TOKEN=" + tenure.token};
}

Supervision::Supervision(const RunOptions &options, Session &session, Signals &signals,
                         Tenure tenure)
    : options_(options), session_(session), signals_(signals), tenure_(std::move(tenure)),
      renewals_(session, tenure_, options.verbose),
      command_(options.command, environment_of(tenure_), signals) {
    keep_guard();
}

int Supervision::run() {
    Poller poller;
    command_.go();
    for (;;) {
        heed_signals();
        heed_renewals();
        heed_time();
        heed_command();
        if (group_is_gone())
            break;
        keep_guard();
        poller.wait({{signals_.fd(), POLLIN, 0}, {guard_->fd(), POLLIN, 0}, session_.wanted()},
                    next());
    }
    guard_.reset();
    release_lease();
    report();
    command_.share_interrupt();
    return exit_status();
}

bool Supervision::group_is_gone() const {
    return command_.has_ended() && (!command_.has_group() || boot_now() >= gone_by_);
}

// Whatever becomes of the guard: the command has one, if the system lets us.
void Supervision::keep_guard() {
    if (guard_ && guard_->is_alive())
        return;
    try {
        auto successor =
            std::make_unique<Guard>(command_.group(), tenure_.deadlines(), tenure_.grace);
        if (guard_)
            say("the guard process has died, another was started");
        guard_ = std::move(successor);
    } catch (const std::system_error &) {
        if (!guard_)
            throw; // before the command was run
    }
}

void Supervision::heed_signals() {
    for (const int each : signals_.take()) {
        if (each == SIGCONT)
            command_.resume();
        else if (each != SIGCHLD && each != SIGTTOU)
            kill(-command_.group(), each);
    }
}

void Supervision::heed_renewals() {
    if (over_)
        return;
    switch (renewals_.advance()) {
    case Renewals::News::none:
        break;
    case Renewals::News::renewed:
        if (!lost_)
            guard_->extend(tenure_.deadlines());
        break;
    case Renewals::News::lost:
        over_ = true;
        lose("the server says that it is over");
        break;
    }
}

void Supervision::heed_time() {
    const Usec now = boot_now();
    const bool acted = guard_->has_acted();
    if (!lost_ && (acted || now >= tenure_.deadlines().term_at))
        lose(renewals_.trouble().empty() ? "it could not be renewed in time" : renewals_.trouble());
    if (now >= kill_at_) {
        signal_group(command_.group(), SIGKILL);
        gone_by_ = std::min(gone_by_, now + patience);
        kill_at_ = now + patience;
    }
}

void Supervision::lose(const std::string &why) {
    if (lost_)
        return;
    lost_ = true;
    end_group(std::min(boot_now() + tenure_.grace, tenure_.deadlines().kill_at));
    say("lost the lease " + quoted(tenure_.name) + ", ends the command: " + why);
}

void Supervision::end_group(Usec kill_at) {
    const Usec now = boot_now();
    kill_at_ = std::min(kill_at_, kill_at);
    if (lost_)
        guard_->only_kill({now, kill_at_});
    if (kill_at_ > now)
        signal_group(command_.group(), SIGTERM);
}

void Supervision::heed_command() {
    command_.look();
    if (command_.has_ended()) {
        // What it left behind in its group would run without the lease.
        if (kill_at_ == never && command_.has_group())
            end_group(boot_now() + tenure_.grace);
    } else if (command_.stopped_as_job()) {
        command_.stop_with_it();
    }
}

Usec Supervision::next() const {
    Usec next = kill_at_;
    if (command_.has_ended())
        next = std::min(next, boot_now() + group_pace);
    if (!lost_)
        next = std::min(next, tenure_.deadlines().term_at);
    return over_ ? next : std::min(next, renewals_.next());
}

void Supervision::release_lease() {
    if (over_ || boot_now() >= tenure_.deadline()) // stopped for too long: it has ended by itself
        return;
    // A command that never ran needs no time kept from others.
    const std::optional<Usec> keep = command_.was_run() ? options_.keep : std::nullopt;
    const Usec until = std::min(tenure_.deadline(), boot_now() + release_time);
    const std::optional<bool> was_ours = release(session_, tenure_, keep, until);
    if (was_ours && !*was_ours && !lost_) {
        lost_ = true;
        say("the lease " + quoted(tenure_.name) + " was lost before the command ended");
    }
}

void Supervision::report() const {
    const Latency &latency = renewals_.latency();
    const Usec p99 = latency.percentile(99);
    const bool close = renewals_.least_left() < tenure_.ttl / 3;
    if (options_.verbose && latency.count() == 0)
        say("no renewals, the command ended before the first");
    if (latency.count() == 0)
        return;
    if (options_.verbose || close || lost_)
        say(std::to_string(latency.count()) + " renewals, p50 " +
            format_duration(latency.percentile(50)) + ", p99 " + format_duration(p99) +
            ", at the closest " + format_duration(std::max<Usec>(renewals_.least_left(), 0)) +
            " of " + format_duration(tenure_.ttl) + " were left");
    if (tenure_.ttl < 10 * p99)
        say("warning: the TTL of " + format_duration(tenure_.ttl) +
            " is less than ten times as long as renewals take (p99 " + format_duration(p99) + ")");
}

int Supervision::exit_status() const {
    if (lost_)
        return exit_lost;
    if (!command_.was_run())
        say("could not run " + quoted(options_.command.front()) + ": " +
            std::strerror(command_.exec_error()));
    return command_.exit_status();
}

} // namespace

int run_command(int argc, char **argv) {
    RunOptions options = read_run_options(argc, argv);
    Signals signals;
    Session session(options.connection, options.ttl / 6);
    Acquisition acquisition(options, session, signals);
    const int status = acquisition.run();
    if (status == exit_ok) {
        if (options.verbose)
            say("holds " + quoted(options.name) + " as " + quoted(options.owner) + ", token " +
                acquisition.tenure().token);
        try {
            return Supervision(options, session, signals, acquisition.tenure()).run();
        } catch (const std::system_error &) {
            release(session, acquisition.tenure(), std::nullopt, boot_now() + release_time);
            throw;
        }
    }
    if (acquisition.may_be_held())
        release(session, acquisition.tenure(), std::nullopt, boot_now() + release_time);
    return status;
}

} // namespace leasectl
