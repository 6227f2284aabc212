#include "gate.hpp"

namespace lease {

namespace {

// Users' own advisory locks have 1 and 2 there.
enum TagKind : uint16 {
    kind_gate = 0x6c01,
    kind_sequence = 0x6c04,
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

} // namespace

LOCKTAG gate_tag(std::string_view name) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    pg_cryptohash_ctx *hash = pg_cryptohash_create(PG_SHA256);
    if (pg_cryptohash_init(hash) < 0 ||
        pg_cryptohash_update(hash, (const uint8 *)name.data(), name.size()) < 0 ||
        pg_cryptohash_final(hash, digest, sizeof(digest)) < 0)
        elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash));
    pg_cryptohash_free(hash);
    return tag_of(big_endian(digest), big_endian(digest + 4), kind_gate);
}

LOCKTAG sequence_tag() {
    return tag_of(0, 0, kind_sequence);
}

bool try_exclusive(const LOCKTAG &tag) {
    return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void take_exclusive(const LOCKTAG &tag) {
    LockAcquire(&tag, ExclusiveLock, false, false);
}

void give_back(const LOCKTAG &tag, LOCKMODE mode) {
    LockRelease(&tag, mode, false);
}

} // namespace lease
