// libFuzzer on src/core, by `make fuzz`: any interval, row, claim and instant that the server could
// hand over. Invariant: each step is taken only if the core itself says that it is allowed, as the
// server does; what it leads to is compared with rules told in other terms. A rule that is broken
// is a trap; undefined behaviour is the sanitizers' part.
#include "core/duration.hpp"
#include "core/tenure.hpp"

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

using namespace lease;

namespace {

__extension__ using Wide = __int128;

constexpr Usec first_instant = -211813488000000000; // 4714 BC, as the server has it
constexpr Usec longest = std::numeric_limits<Usec>::max();
constexpr Wide day = Wide{86400} * 1000000;

void check(bool holds) {
    if (!holds)
        __builtin_trap();
}

// Bytes of the fuzzer as what the core takes. Few texts, so that owners meet again.
struct Source {
    FuzzedDataProvider bytes;
    std::string texts[3];

    Source(const std::uint8_t *data, std::size_t size) : bytes(data, size) {
        for (std::string &text : texts)
            text = bytes.ConsumeRandomLengthString(longest_name);
    }

    bool flag() { return bytes.ConsumeBool(); }
    std::string_view text() { return texts[bytes.ConsumeIntegralInRange(0, 2)]; }
    Usec instant() { return bytes.ConsumeIntegralInRange<Usec>(first_instant, timestamp_end - 1); }

    // Of a row that was made by hand, or of one that is near an instant.
    Usec any(Usec near) {
        return flag() ? bytes.ConsumeIntegral<Usec>()
                      : near + bytes.ConsumeIntegralInRange<Usec>(-3, 3);
    }

    template <typename Make> auto maybe(Make make) -> std::optional<decltype(make())> {
        return flag() ? std::optional(make()) : std::nullopt;
    }

    Row row(Usec now) {
        const auto when = [&] { return any(now); };
        const auto words = [&] { return text(); };
        Row row;
        row.owner = maybe(words);
        row.expiry = maybe(when);
        row.token = bytes.ConsumeIntegral<std::int64_t>();
        row.granted_to = maybe(words);
        row.acquired_at = maybe(when);
        row.renewed_at = maybe(when);
        row.ttl = maybe(when);
        row.session_pid = maybe([&] { return bytes.ConsumeIntegral<std::int32_t>(); });
        row.session_start = maybe(when);
        row.grants = bytes.ConsumeIntegral<std::int64_t>();
        row.takeovers = bytes.ConsumeIntegral<std::int64_t>();
        row.min_margin = maybe(when);
        row.last_owner = maybe(words);
        row.last_end =
            maybe([&] { return static_cast<Ending>(bytes.ConsumeIntegralInRange(0, 2)); });
        return row;
    }

    Claim claim(const Row &row) {
        return {text(), maybe([&] { return flag() ? row.token : any(row.token / 2); }), flag()};
    }
};

void check_duration(const Duration &duration, Wide exact, bool infinite, bool months,
                    bool zero_too) {
    const DurationError expected = infinite                 ? DurationError::infinite
                                   : months                 ? DurationError::months
                                   : exact < 0              ? DurationError::negative
                                   : exact > longest        ? DurationError::too_long
                                   : exact == 0 && zero_too ? DurationError::zero
                                                            : DurationError::none;
    check(duration.error == expected);
    check(expected != DurationError::none || duration.usec == exact);
}

void fuzz_durations(FuzzedDataProvider &bytes) {
    using Int = std::numeric_limits<std::int32_t>;
    const auto days = bytes.ConsumeIntegral<std::int32_t>();
    const auto usec = bytes.ConsumeIntegral<Usec>();
    const auto months = bytes.ConsumeBool() ? 0 : bytes.ConsumeIntegral<std::int32_t>();
    const bool infinite =
        (months == Int::max() && days == Int::max() && usec == longest) ||
        (months == Int::min() && days == Int::min() && usec == std::numeric_limits<Usec>::min());
    const Wide exact = days * day + usec;

    check_duration(ttl_from({months, days, usec}), exact, infinite, months != 0, true);
    check_duration(keep_from({months, days, usec}), exact, infinite, months != 0, false);
    const Wide wait = (Wide{months} * 30 + days) * day + usec;
    check_duration(wait_from({months, days, usec}), wait > longest ? longest : wait, false, false,
                   false);
}

// A lease that may be taken is, and is a later tenure than the one before.
void fuzz_grant(Source &source, const Row *row, Usec now, Usec ttl) {
    const std::optional<Usec> expiry = instant_after(now, ttl);
    const std::optional<std::int64_t> token = least_next_token(row);
    check(expiry.has_value() == (Wide{now} + ttl < timestamp_end));
    check(token || row->token == std::numeric_limits<std::int64_t>::max());
    if (!expiry || !token)
        return;
    const std::string_view owner = source.text();
    const Row next = granted(row, owner, source.text(), ttl, *expiry, *token, now);
    check(state_at(&next, now) == State::held && state_at(&next, *expiry) == State::takeable);
    check(standing_at(&next, {owner, *token, true}, now) == Standing::holder);
    check(row == nullptr || next.token > row->token);
    check(!next.session_pid && !next.min_margin);
}

// What a holder may do.
void fuzz_holder(Source &source, const Row &row, Usec now, Usec ttl) {
    if (const std::optional<Usec> expiry = instant_after(now, ttl)) {
        const Row next = extended(row, ttl, *expiry, now);
        check(state_at(&next, now) == State::held && next.token == row.token);
        check(!row.min_margin || *next.min_margin <= *row.min_margin);
    }
    const std::optional<Usec> keep =
        source.maybe([&] { return source.bytes.ConsumeIntegralInRange<Usec>(0, longest); });
    if (const std::optional<Usec> free = free_after_release(row, keep, now)) {
        const Row next = ended(row, Ending::released, *free);
        check(*free >= now && state_at(&next, *free) == State::takeable);
        check(*free == now || state_at(&next, now) == State::cooling);
        check(next.last_owner == row.owner && next.token == row.token);
    }
    const Row attached = bound(row, source.bytes.ConsumeIntegral<std::int32_t>(), now);
    check(state_at(&attached, now) == State::held);
    check(care_for(attached, false, now) == Care::release);
    const Care care = care_for(attached, true, now);
    check(care == Care::none || care == Care::renew);
    const std::optional<Usec> due = next_care(attached);
    check(due ? *due <= *row.expiry && (*due > now || care == Care::renew) : care == Care::none);
    check(!unbound(attached).session_pid);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    Source source(data, size);
    fuzz_durations(source.bytes);

    const Usec now = source.instant();
    const Usec ttl = source.bytes.ConsumeIntegralInRange<Usec>(1, longest);
    const Row row = source.row(now);
    const Claim claim = source.claim(row);
    const State state = state_at(&row, now);
    const Standing standing = standing_at(&row, claim, now);
    check((state == State::held) == (row.owner && row.expiry && *row.expiry > now));
    check(standing != Standing::holder ||
          (state == State::held && claim.entitled && *row.owner == claim.owner &&
           claim.token.value_or(row.token) == row.token));
    check(standing_at(nullptr, claim, now) == Standing::not_held);

    fuzz_grant(source, nullptr, now, ttl);
    if (state == State::takeable)
        fuzz_grant(source, &row, now, ttl);
    if (standing == Standing::holder)
        fuzz_holder(source, row, now, ttl);
    if (state != State::takeable) {
        const Row broken = ended(row, Ending::broken, now);
        check(state_at(&broken, now) == State::takeable && broken.token == row.token);
    } else {
        check(care_for(row, true, now) == Care::unbind);
    }
    return 0;
}
