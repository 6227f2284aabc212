#include "hints.hpp"

namespace lease {

namespace {

// A power of two; each name has one place, and the last one there wins.
constexpr uint32 hint_count = 512;

struct Hint {
    ItemPointerData tid;
    uint8 length; // 0: empty
    char name[longest_name];
};

Hint hints[hint_count];

Hint &place_of(std::string_view name) {
    const uint32 hash = hash_bytes((const unsigned char *)name.data(), (int)name.size());
    return hints[hash % hint_count];
}

} // namespace

const ItemPointerData *hint_for(std::string_view name) {
    const Hint &hint = place_of(name);
    return std::string_view(hint.name, hint.length) == name ? &hint.tid : nullptr;
}

void remember_hint(std::string_view name, const ItemPointerData &tid) {
    Hint &hint = place_of(name);
    if (std::string_view(hint.name, hint.length) != name) {
        if (name.size() > longest_name)
            return;
        hint.length = (uint8)name.size();
        memcpy(hint.name, name.data(), name.size());
    }
    hint.tid = tid;
}

void forget_hints() {
    for (Hint &hint : hints)
        hint.length = 0;
}

} // namespace lease
