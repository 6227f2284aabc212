#include "latency.hpp"

#include <algorithm>
#include <cmath>

namespace leasectl {

namespace {

constexpr double ratio = 1.05; // of one bucket's limit to the next

} // namespace

void Latency::add(Usec duration) {
    const double usec = std::max<double>(1, static_cast<double>(duration));
    const int bucket = static_cast<int>(std::log(usec) / std::log(ratio));
    counts_[static_cast<std::size_t>(std::clamp(bucket, 0, buckets - 1))]++;
    count_++;
}

Usec Latency::percentile(double percent) const {
    const auto wanted =
        static_cast<std::uint64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (int i = 0; i < buckets; i++) {
        seen += counts_[static_cast<std::size_t>(i)];
        if (seen > 0 && seen >= wanted)
            return static_cast<Usec>(std::pow(ratio, i + 0.5));
    }
    return 0;
}

} // namespace leasectl
