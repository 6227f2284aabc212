#include "duration.hpp"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace leasectl {

namespace {

constexpr double longest = 100.0 * 365 * 86400; // seconds

struct Unit {
    const char *name;
    double seconds;
};

constexpr Unit units[] = {
    {"us", 1e-6},    {"ms", 1e-3}, {"s", 1},       {"sec", 1},      {"second", 1},   {"seconds", 1},
    {"m", 60},       {"min", 60},  {"minute", 60}, {"minutes", 60}, {"h", 3600},     {"hour", 3600},
    {"hours", 3600}, {"d", 86400}, {"day", 86400}, {"days", 86400}, {"w", 7 * 86400}};

std::optional<double> seconds_of(const std::string &name) {
    for (const Unit &unit : units)
        if (name == unit.name)
            return unit.seconds;
    return std::nullopt;
}

void skip_blanks(const char *&at) {
    while (std::isspace(static_cast<unsigned char>(*at)))
        at++;
}

// One number, without the signs, exponents and words that strtod would take.
std::optional<double> read_number(const char *&at) {
    std::string digits;
    while (std::isdigit(static_cast<unsigned char>(*at)) || *at == '.')
        digits += *at++;
    char *end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || digits == "." || *end != '\0')
        return std::nullopt;
    return value;
}

} // namespace

std::optional<Usec> parse_duration(const std::string &text) {
    double total = 0;
    int parts = 0;
    const char *at = text.c_str();
    for (skip_blanks(at); *at != '\0'; skip_blanks(at), parts++) {
        const std::optional<double> number = read_number(at);
        skip_blanks(at);
        std::string name;
        while (std::isalpha(static_cast<unsigned char>(*at)))
            name += *at++;
        if (name.empty() && *at == '\0' && parts == 0)
            name = "s";
        const std::optional<double> unit = seconds_of(name);
        if (!number || !unit)
            return std::nullopt;
        total += *number * *unit;
    }
    if (parts == 0 || total > longest)
        return std::nullopt;
    return static_cast<Usec>(std::llround(total * second));
}

std::string format_duration(Usec duration) {
    char text[64];
    const Usec seconds = duration / second;
    // From there on %.3g would say 1e+03 ms.
    if (duration < 999500)
        std::snprintf(text, sizeof text, "%.3g ms", static_cast<double>(duration) / millisecond);
    else if (seconds < 60)
        std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(duration) / second);
    else if (seconds < 3600)
        std::snprintf(text, sizeof text, "%d min %d s", static_cast<int>(seconds / 60),
                      static_cast<int>(seconds % 60));
    else if (seconds < 86400)
        std::snprintf(text, sizeof text, "%d h %d min", static_cast<int>(seconds / 3600),
                      static_cast<int>(seconds % 3600 / 60));
    else
        std::snprintf(text, sizeof text, "%d d %d h", static_cast<int>(seconds / 86400),
                      static_cast<int>(seconds % 86400 / 3600));
    return text;
}

std::string interval_literal(Usec duration) {
    return std::to_string(duration) + " microseconds";
}

} // namespace leasectl
