#include "row_version.hpp"

namespace lease {

namespace {

// The next version's place on the same page, or InvalidOffsetNumber.
OffsetNumber successor_on_page(HeapTupleHeader header, BlockNumber block, OffsetNumber offset) {
    const ItemPointerData &next = header->t_ctid;
    if ((header->t_infomask & HEAP_XMAX_INVALID) || HeapTupleHeaderIsOnlyLocked(header) ||
        HeapTupleHeaderIndicatesMovedPartitions(header) ||
        ItemPointerGetBlockNumberNoCheck(&next) != block ||
        ItemPointerGetOffsetNumberNoCheck(&next) == offset)
        return InvalidOffsetNumber;
    return ItemPointerGetOffsetNumberNoCheck(&next);
}

} // namespace

bool visible_version(Relation heap, Buffer buffer, const ItemPointerData &tid, Snapshot snapshot,
                     HeapTuple tuple) {
    const Page page = BufferGetPage(buffer);
    const BlockNumber block = ItemPointerGetBlockNumber(&tid);
    OffsetNumber offset = ItemPointerGetOffsetNumber(&tid);
    TransactionId made_by = InvalidTransactionId; // whoever ended the version before

    // A page has room for so many versions; more steps than that would be a corrupt circle.
    for (int step = 0; step <= (int)MaxHeapTuplesPerPage; step++) {
        if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
            return false;
        const ItemId item = PageGetItemId(page, offset);
        if (ItemIdIsRedirected(item)) {
            offset = (OffsetNumber)ItemIdGetRedirect(item);
            continue;
        }
        if (!ItemIdIsNormal(item))
            return false;

        tuple->t_data = (HeapTupleHeader)PageGetItem(page, item);
        tuple->t_len = ItemIdGetLength(item);
        tuple->t_tableOid = RelationGetRelid(heap);
        ItemPointerSet(&tuple->t_self, block, offset);
        // The place may have been given to another row meanwhile.
        if (TransactionIdIsValid(made_by) && HeapTupleHeaderGetXmin(tuple->t_data) != made_by)
            return false;
        if (HeapTupleSatisfiesVisibility(tuple, snapshot, buffer))
            return true;

        offset = successor_on_page(tuple->t_data, block, offset);
        if (offset == InvalidOffsetNumber)
            return false;
        made_by = HeapTupleHeaderGetUpdateXid(tuple->t_data);
    }
    return false;
}

} // namespace lease
