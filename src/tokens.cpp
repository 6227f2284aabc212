#include "tokens.hpp"

#include "gate.hpp"
#include "statement.hpp"

namespace lease {

namespace {

// So many draws of others cannot come between a draw of ours and the move after it.
constexpr std::int64_t short_way = 100000;

// A row made by hand has a token that the sequence did not give: move the sequence above it,
// or the token would come back once the row is deleted. A short way goes by drawing, since others
// may draw meanwhile: a move must never be one back.
std::int64_t draw_at_least(const Table &table, std::int64_t least) {
    const LOCKTAG tag = sequence_tag();
    take_lock(tag, ExclusiveLock);
    std::int64_t token = nextval_internal(table.sequence, false);
    while (token < least && least - token < short_way)
        token = nextval_internal(table.sequence, false);
    if (token < least) {
        const Identity caller = become_owner_of(table.heap, 0);
        DirectFunctionCall2(setval_oid, ObjectIdGetDatum(table.sequence), Int64GetDatum(least));
        become_again(caller);
        token = least;
    }
    give_back(tag, ExclusiveLock);
    return token;
}

} // namespace

std::int64_t draw_token(const Table &table, const Row *row) {
    const std::optional<std::int64_t> least = least_next_token(row);
    if (!least)
        ereport(ERROR,
                (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("the lease has no token left"),
                 errdetail("The token in its row is the largest bigint.")));
    const std::int64_t token = nextval_internal(table.sequence, false);
    return token >= *least ? token : draw_at_least(table, *least);
}

} // namespace lease
