// Pool rows of a page table's sequences (laws E11, E12).
#include <quire/page_walk.h>

#include "ops.h"
#include "rows.h"

namespace quire::reference {

namespace {

void put(const quire_tensor* tensor, std::int64_t i, std::int64_t number) {
  *reinterpret_cast<std::int32_t*>(RowView(tensor).at(i)) = static_cast<std::int32_t>(number);
}

}  // namespace

// E11: read the page of the last prefix token, store the final state at the last page, checkpoints from the prefix's page on.
void gdn_prefill_slots(const quire_gdn_slots_args& args) {
  const PageLists lists(args);
  for (std::int64_t i = 0; i < args.last_page_len->shape[0]; ++i) {
    const PagedSequence sequence = lists.prefill(i);
    const std::int64_t prefix = sequence.prefix();
    put(args.state_indices, i, prefix > 0 ? lists.page(i, sequence.page_of(prefix - 1)) : -1);
    put(args.output_state_indices, i, sequence.fresh > 0 ? lists.page(i, sequence.pages - 1) : -1);
    put(args.prefix_lens, i, prefix);
    put(args.checkpoint_cu_starts, i, lists.page_indptr(i) + sequence.page_of(prefix));
  }
}

// E12: a token that opens a page reads the page before; otherwise the last page is read and written.
void gdn_decode_slots(const quire_gdn_slots_args& args) {
  const PageLists lists(args);
  for (std::int64_t i = 0; i < args.last_page_len->shape[0]; ++i) {
    const PagedSequence sequence = lists.decode(i);
    const bool padded = sequence.pages == 0;  // E10
    put(args.state_indices, i, padded ? -1 : lists.page(i, sequence.page_of(sequence.prefix() - 1)));
    put(args.output_state_indices, i, padded ? -1 : lists.page(i, sequence.pages - 1));
  }
}

}  // namespace quire::reference
