#include "clock.hpp"

#include <cerrno>
#include <ctime>
#include <system_error>

#include <sys/timerfd.h>
#include <unistd.h>

namespace leasectl {

Usec boot_now() noexcept {
    timespec now = {};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * second + now.tv_nsec / 1000;
}

void arm_timer(int fd, Usec at) noexcept {
    itimerspec spec = {};
    if (at != never) {
        // A time of zero would disarm it; one that is over fires at once.
        const Usec instant = at > 0 ? at : 1;
        spec.it_value.tv_sec = static_cast<time_t>(instant / second);
        spec.it_value.tv_nsec = static_cast<long>(instant % second * 1000);
    }
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, nullptr);
}

int make_timer() {
    const int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        throw std::system_error(errno, std::generic_category(), "could not create a timer");
    return fd;
}

Poller::Poller() : timer_(make_timer()) {}

Poller::~Poller() {
    close(timer_);
}

void Poller::wait(std::vector<pollfd> fds, Usec until) {
    arm_timer(timer_, until);
    fds.push_back({timer_, POLLIN, 0});
    poll(fds.data(), fds.size(), -1);
}

} // namespace leasectl
