#include "log.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>

#include <poll.h>
#include <unistd.h>

namespace leasectl {

namespace {

constexpr int reader_patience = 50; // ms

} // namespace

void say(const std::string &message) {
    const std::string line = "leasectl: " + message + "\n";
    // Who has stopped reading (^S, a pager) must not stop the renewals: such a line is lost.
    pollfd output = {STDERR_FILENO, POLLOUT, 0};
    if (poll(&output, 1, reader_patience) <= 0)
        return;
    // One write, so that lines of several programs do not mix; of no more than always fits into a
    // pipe with room. Where nobody reads, nobody misses it.
    if (write(STDERR_FILENO, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF)) < 0)
        return;
}

std::string printable(const std::string &text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); i++) {
        const auto byte = static_cast<unsigned char>(text[i]);
        // C1 controls are c2 80 to c2 9f in UTF-8.
        const bool c1 =
            byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
        if (byte >= 0x20 && byte != 0x7f && !c1) {
            out += text[i];
            continue;
        }
        char escaped[8];
        const unsigned code = c1 ? static_cast<unsigned char>(text[++i]) : byte;
        std::snprintf(escaped, sizeof escaped, "\\x%02x", code);
        out += escaped;
    }
    return out;
}

std::string quoted(const std::string &text) {
    return "\"" + printable(text) + "\"";
}

} // namespace leasectl
