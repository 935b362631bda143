// extend: a call's values to their slots, then what its lanes attend over (laws C). Two kernels: every store before every read (C2).
#include "../index.h"
#include "../kernels.h"

namespace quire::gpu {

// C3: a block per token.
QUIRE_KERNEL(store_rows, StoreParameters) {
  const IndexView& index = parameters.index;
  const std::int64_t tokens = batch_of(index) * seq_of(index);
  for (std::int64_t n = block(); n < tokens; n += blocks()) {
    const std::int64_t b = n / seq_of(index), i = n % seq_of(index);
    const std::int64_t slot = target_of(index, b, i, parameters.pool.sizes[0]);
    if (slot < 0) continue;
    copy_row(parameters.row, row_at(parameters.values, offset(parameters.values, b, i)),
             changed_row_at(parameters.pool, offset(parameters.pool, slot)));
  }
}

// C5: whether some token of the lane sees a column of the table. Asked by the whole block.
static QUIRE_DEVICE bool lane_sees(const IndexView& index, std::int64_t b, std::int64_t column) {
  const std::int64_t least = is_draft(index) ? least_position(index, b) : -1;
  bool seen = false;
  for (std::int64_t i = thread(); i < seq_of(index); i += threads()) {
    const Range range = table_range(index, b, i, least);
    seen |= column >= range.begin && column < range.end;
  }
  return block_any(seen);
}

// A block per row of `seen`: [B, columns], or with a selection [B, S, choices] (C6).
QUIRE_KERNEL(gather_rows, GatherParameters) {
  const IndexView& index = parameters.index;
  const TensorView& seen = parameters.seen;
  const std::int64_t slots = parameters.pool.sizes[0];
  const std::int64_t places = is_selecting(index) ? seq_of(index) * choices_of(index) : all_columns(index);
  for (std::int64_t n = block(); n < batch_of(index) * places; n += blocks()) {
    const std::int64_t b = n / places;
    Place from;
    std::int64_t at = 0;
    if (is_selecting(index)) {  // C6
      const std::int64_t i = n % places / choices_of(index), c = n % places % choices_of(index);
      const std::int64_t column = choice_of(index, b, i, c);
      if (sees(index, b, i, column, -1)) from = place_of(index, b, column, slots);
      at = offset(seen, b, i, c);
    } else {
      const std::int64_t column = n % places;
      if (column >= table_columns(index))
        from = {Place::call, column - table_columns(index)};  // C7: a draft's token
      else if (!is_tabled(index) || lane_sees(index, b, column))
        from = place_of(index, b, column, slots);
      at = offset(seen, b, column);
    }
    unsigned char* to = changed_row_at(seen, at);
    if (from.in == Place::pool)
      copy_row(parameters.row_of_pool, row_at(parameters.pool, offset(parameters.pool, from.number)), to);
    else if (from.in == Place::call)
      copy_row(parameters.row_of_values, row_at(parameters.values, offset(parameters.values, b, from.number)), to);
    else
      clear_row(parameters.row_of_values, to);
  }
}

}  // namespace quire::gpu
