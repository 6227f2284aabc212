#include "gate.hpp"

namespace lease {

namespace {

// Users' own advisory locks have 1 and 2 there.
enum TagKind : uint16 {
    kind_gate = 0x6c01,
    kind_queue = 0x6c02,
    kind_watch = 0x6c03,
    kind_sequence = 0x6c04,
    kind_keeper = 0x6c05,
    kind_binding = 0x6c06,
    kind_session = 0x6c07,
};

LOCKTAG tag_of(uint32 high, uint32 low, TagKind kind) {
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, high, low, kind);
    return tag;
}

uint32 big_endian(const uint8 *bytes) {
    return ((uint32)bytes[0] << 24) | ((uint32)bytes[1] << 16) | ((uint32)bytes[2] << 8) |
           (uint32)bytes[3];
}

struct Digest {
    uint32 high;
    uint32 low;
};

Digest digest_of(std::string_view name) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    pg_cryptohash_ctx *hash = pg_cryptohash_create(PG_SHA256);
    if (pg_cryptohash_init(hash) < 0 ||
        pg_cryptohash_update(hash, (const uint8 *)name.data(), name.size()) < 0 ||
        pg_cryptohash_final(hash, digest, sizeof(digest)) < 0)
        elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash));
    pg_cryptohash_free(hash);
    return {big_endian(digest), big_endian(digest + 4)};
}

// One call asks for the tags of one name several times.
struct LastName {
    size_t length;
    char name[longest_name];
    Digest digest;
};

LastName last_name;

} // namespace

LOCKTAG gate_tag(std::string_view name) {
    if (std::string_view(last_name.name, last_name.length) != name) {
        const Digest digest = digest_of(name);
        if (name.size() > longest_name) // made by hand
            return tag_of(digest.high, digest.low, kind_gate);
        last_name.digest = digest;
        last_name.length = name.size();
        memcpy(last_name.name, name.data(), name.size());
    }
    return tag_of(last_name.digest.high, last_name.digest.low, kind_gate);
}

LOCKTAG queue_tag(const LOCKTAG &gate) {
    return tag_of(gate.locktag_field2, gate.locktag_field3, kind_queue);
}

LOCKTAG watch_tag(const LOCKTAG &gate) {
    return tag_of(gate.locktag_field2, gate.locktag_field3, kind_watch);
}

LOCKTAG sequence_tag() {
    return tag_of(0, 0, kind_sequence);
}

LOCKTAG keeper_tag(Oid table) {
    return tag_of(table, 0, kind_keeper);
}

LOCKTAG binding_tag(Oid table) {
    return tag_of(table, 0, kind_binding);
}

LOCKTAG session_tag(int pid, TimestampTz start) {
    // Two sessions of one process ID are minutes apart at the least, 32 bits tell them apart.
    return tag_of((uint32)pid, (uint32)(start ^ (start >> 32)), kind_session);
}

TagUse use_of(const LOCKTAG &tag) {
    if (tag.locktag_type != LOCKTAG_ADVISORY || tag.locktag_field1 != MyDatabaseId)
        return TagUse::none;
    switch (tag.locktag_field4) {
    case kind_gate:
        return TagUse::gate;
    case kind_queue:
        return TagUse::queue;
    case kind_watch:
        return TagUse::watch;
    default:
        return TagUse::none;
    }
}

bool is_same_lease(const LOCKTAG &one, const LOCKTAG &other) {
    return one.locktag_field2 == other.locktag_field2 && one.locktag_field3 == other.locktag_field3;
}

bool try_lock(const LOCKTAG &tag, LOCKMODE mode) {
    return LockAcquire(&tag, mode, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void take_lock(const LOCKTAG &tag, LOCKMODE mode) {
    LockAcquire(&tag, mode, false, false);
}

bool is_held(const LOCKTAG &tag, LOCKMODE mode) {
    int count = 0;
    VirtualTransactionId *holders = GetLockConflicts(&tag, mode, &count);
    pfree(holders);
    return count > 0;
}

bool is_held_by_session(const LOCKTAG &tag) {
    if (!try_lock(tag, ShareLock))
        return true;
    give_back(tag, ShareLock);
    return false;
}

void give_back(const LOCKTAG &tag, LOCKMODE mode) {
    LockRelease(&tag, mode, false);
}

} // namespace lease
