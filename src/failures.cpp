#include "failures.hpp"

#include "wait.hpp"

extern "C" {
#include "utils/hsearch.h"
}

namespace lease {

namespace {

constexpr Usec first_pause = 50000;
constexpr Usec longest_pause = 2000000;
constexpr Usec memory = 60000000; // after the last time: nobody is bound by that name any more

struct Failure {
    char name[longest_name]; // the key, with zeros behind it
    Usec since;
    Usec retry;
};

HTAB *failures; // of this process; null until something fails

Failure *failure_of(std::string_view name, HASHACTION action) {
    if (failures == nullptr)
        return nullptr;
    char key[longest_name] = {};
    memcpy(key, name.data(), name.size());
    bool found = false;
    auto *failure = (Failure *)hash_search(failures, key, action, &found);
    if (action == HASH_ENTER && !found)
        failure->since = 0;
    return failure;
}

} // namespace

Usec after_failure(Usec &since) {
    const Usec now = read_clock();
    if (since == 0)
        since = now;
    return now + Min(Max(now - since, first_pause), longest_pause);
}

Usec note_failure(std::string_view name) {
    if (failures == nullptr) {
        HASHCTL shape = {};
        shape.keysize = longest_name;
        shape.entrysize = sizeof(Failure);
        failures = hash_create("leases whose care failed", 16, &shape, HASH_ELEM | HASH_BLOBS);
    }
    Failure *failure = failure_of(name, HASH_ENTER);
    failure->retry = after_failure(failure->since);
    return failure->retry;
}

void forget_failure(std::string_view name) {
    failure_of(name, HASH_REMOVE);
}

void forget_old_failures() {
    if (failures == nullptr)
        return;
    const Usec now = read_clock();
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, failures);
    for (const Failure *failure = nullptr;
         (failure = (const Failure *)hash_seq_search(&scan)) != nullptr;)
        if (now - failure->retry > memory)
            hash_search(failures, failure->name, HASH_REMOVE, nullptr);
}

std::optional<Usec> retry_of(std::string_view name, Usec now) {
    const Failure *failure = failure_of(name, HASH_FIND);
    if (failure == nullptr)
        return std::nullopt;
    return failure->retry - now > longest_pause ? now : failure->retry; // the clock was set back
}

} // namespace lease
