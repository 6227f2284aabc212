#include "reasons.hpp"

namespace lease {

namespace {

// "3.2 s"
const char *seconds(Usec length) {
    return psprintf("%.1f s", (double)length / 1000000.0);
}

const char *reason_of_nobody(const Row *row, Usec now) {
    if (row == nullptr)
        return "No lease of this name is known.";
    if (row->owner && !row->expiry)
        return "It has no expiry.";
    if (row->owner)
        return psprintf("Its last tenure, of another owner or token, expired%s.",
                        since(row->expiry, now));
    if (row->last_end == Ending::released)
        return "Its last tenure was released.";
    if (row->last_end == Ending::broken)
        return "Its last tenure was broken by an administrator.";
    return "It has no owner.";
}

const char *reason_of_other(const Row &row, const Claim &claim, Usec now) {
    if (row.last_owner == claim.owner && row.last_end == Ending::expired)
        return psprintf("It was taken over%s.", since(row.acquired_at, now));
    return psprintf("Another owner acquired it%s.", since(row.acquired_at, now));
}

} // namespace

const char *condition_of(const Answer &answer) {
    switch (answer.standing) {
    case Standing::holder:
    case Standing::not_held:
    case Standing::expired:
        break;
    case Standing::held_by_other:
    case Standing::other_role: // whether the owner's name was guessed is not told
        return "held by another owner";
    case Standing::other_tenure:
        return "held by another tenure";
    }
    return "not held";
}

const char *reason_of(const Answer &answer, const Claim &claim) {
    const Row *row = answer.look.row_if_any();
    switch (answer.standing) {
    case Standing::holder:
        break;
    case Standing::not_held:
        return reason_of_nobody(row, answer.now);
    case Standing::expired:
        return psprintf("Its last tenure expired%s.", since(row->expiry, answer.now));
    case Standing::held_by_other:
    case Standing::other_role:
        return reason_of_other(*row, claim, answer.now);
    case Standing::other_tenure:
        return psprintf("Token " INT64_FORMAT " %s, the live one is " INT64_FORMAT ".",
                        claim.token.value_or(0),
                        claim.token < row->token ? "ended" : "was never given", row->token);
    }
    return "";
}

const char *tenure_in_words(const Row &row) {
    const std::string_view owner = row.owner.value_or("");
    const std::string_view role = row.granted_to.value_or("");
    return psprintf("Its owner was \"%.*s\" of role \"%.*s\", its token " INT64_FORMAT ".",
                    (int)owner.size(), owner.data(), (int)role.size(), role.data(), row.token);
}

const char *since(const std::optional<Usec> &instant, Usec now) {
    return instant && *instant > -timestamp_end ? psprintf(" %s ago", seconds(now - *instant)) : "";
}

} // namespace lease
