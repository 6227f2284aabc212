// Time as leasectl counts it: microseconds of CLOCK_BOOTTIME, which also runs while the
// machine is suspended and which nobody can set.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <poll.h>

namespace leasectl {

using Usec = std::int64_t;

constexpr Usec millisecond = 1000;
constexpr Usec second = 1000 * millisecond;
constexpr Usec never = std::numeric_limits<Usec>::max();

Usec boot_now() noexcept;

// Arms a timerfd of CLOCK_BOOTTIME for that instant; never: disarms it.
void arm_timer(int fd, Usec at) noexcept;

int make_timer();

// Waits until one of the descriptors is ready, or that instant has come, suspended or not.
// Entries with a negative descriptor are skipped. EINTR counts as ready.
class Poller {
public:
    Poller();
    ~Poller();
    Poller(const Poller &) = delete;
    Poller &operator=(const Poller &) = delete;

    void wait(std::vector<pollfd> fds, Usec until);

private:
    int timer_;
};

} // namespace leasectl
