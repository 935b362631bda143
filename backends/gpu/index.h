// The laws of the index in kernels, one function each: A2, A12, B1-B5, B7, C3, C7.
//
// No number of a tensor is trusted: a row, slot or column out of range addresses nothing, and no sum of positions overflows.
#pragma once

#include "tensors.h"

namespace quire::gpu {

/// A half-open range of columns.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
QUIRE_DEVICE std::int64_t size_of(const Range& range) { return range.end - range.begin; }

QUIRE_DEVICE std::int64_t batch_of(const IndexView& index) { return index.pos.sizes[0]; }
QUIRE_DEVICE std::int64_t seq_of(const IndexView& index) { return index.pos.sizes[1]; }
QUIRE_DEVICE bool is_tabled(const IndexView& index) { return index.kind == QUIRE_INDEX_TABLED; }
QUIRE_DEVICE bool is_draft(const IndexView& index) { return is_present(index.sees); }
QUIRE_DEVICE bool is_selecting(const IndexView& index) { return is_present(index.columns); }
QUIRE_DEVICE std::int64_t choices_of(const IndexView& index) { return index.columns.sizes[2]; }

/// Columns of the table, or on a whole index the tokens or blocks of a lane (B3); a draft's tokens come behind them.
QUIRE_DEVICE std::int64_t table_columns(const IndexView& index) {
  if (is_tabled(index)) return index.table.sizes[1];
  return seq_of(index) / index.block_size + (seq_of(index) % index.block_size != 0 ? 1 : 0);
}
QUIRE_DEVICE std::int64_t all_columns(const IndexView& index) { return table_columns(index) + (is_draft(index) ? seq_of(index) : 0); }

/// A1: the row of the table that a lane is.
QUIRE_DEVICE std::int64_t row_of(const IndexView& index, std::int64_t b) {
  return is_present(index.row) ? integer_at(index.row, offset(index.row, b)) : b;
}

/// A2: a token's position, -1 where it is padding.
QUIRE_DEVICE std::int64_t position(const IndexView& index, std::int64_t b, std::int64_t i) {
  if (is_present(index.row) && row_of(index, b) == -1) return -1;
  const std::int64_t t = integer_at(index.pos, offset(index.pos, b, i));
  return t < 0 ? -1 : t;
}

/// The lane's least real position, -1 where it has none (B4). Asked of drafts alone, whose lanes are short.
QUIRE_DEVICE std::int64_t least_position(const IndexView& index, std::int64_t b) {
  std::int64_t least = -1;
  for (std::int64_t i = 0; i < seq_of(index); ++i) {
    const std::int64_t t = position(index, b, i);
    if (t >= 0 && (least < 0 || t < least)) least = t;
  }
  return least;
}

/// A2: the slot of a pool of `slots` that stands at a column of the table read, -1 where nothing does.
QUIRE_DEVICE std::int64_t slot_of(const IndexView& index, std::int64_t b, std::int64_t column, std::int64_t slots) {
  const std::int64_t row = row_of(index, b);
  if (row < 0 || row >= index.table.sizes[0]) return -1;
  const std::int64_t slot = integer_at(index.table, offset(index.table, row, column));
  return slot >= 0 && slot < slots ? slot : -1;
}

/// C3, B7: the slot of a pool of `slots` at which a token of a tabled index stores, -1 where it stores nothing.
QUIRE_DEVICE std::int64_t target_of(const IndexView& index, std::int64_t b, std::int64_t i, std::int64_t slots) {
  const std::int64_t t = position(index, b, i);
  if (t < 0) return -1;
  if (is_draft(index)) {
    const std::int64_t slot = integer_at(index.slots, offset(index.slots, b, i));
    return slot >= 0 && slot < slots ? slot : -1;
  }
  const std::int64_t m = index.block_size;
  if (t % m != m - 1 || t / m >= table_columns(index)) return -1;
  return slot_of(index, b, t / m, slots);
}

/// B1, B3, B4: the columns of the table (or blocks of a whole index) that a token sees are one range; `least` is the lane's least
/// position, read under a draft alone.
QUIRE_DEVICE Range table_range(const IndexView& index, std::int64_t b, std::int64_t i, std::int64_t least) {
  const std::int64_t t = position(index, b, i);
  if (t < 0) return {};
  const std::int64_t m = index.block_size;
  // p_j = j m + m - 1 <= t: j < (t + 1) / m, written without t + 1, which the greatest position has not.
  std::int64_t end = t / m >= table_columns(index) ? table_columns(index) : t / m + (t % m == m - 1 ? 1 : 0);
  if (is_draft(index) && end > least) end = least;
  // p_j > t - w: the first j is (t - w + 1) / m.
  const std::int64_t begin = index.window > 0 && t >= index.window ? (t - index.window + 1) / m : 0;
  return begin < end ? Range{begin, end} : Range{};
}

/// B2: the places of the tokens that a token of a whole or packed index sees. Those of one sequence stand side by side.
QUIRE_DEVICE Range token_range(const IndexView& index, std::int64_t b, std::int64_t i) {
  const std::int64_t t = position(index, b, i);
  if (t < 0) return {};
  const std::int64_t first = index.window > 0 && t >= index.window ? t - index.window + 1 : 0;
  const std::int64_t begin = t - first > i ? 0 : i - (t - first);
  return {begin, i + 1};
}

/// What a token sees, a draft's own tokens apart.
QUIRE_DEVICE Range seen_range(const IndexView& index, std::int64_t b, std::int64_t i, std::int64_t least) {
  return is_tabled(index) || index.block_size != 1 ? table_range(index, b, i, least) : token_range(index, b, i);
}

/// B4: whether draft token i sees draft token j.
QUIRE_DEVICE bool sees_draft_token(const IndexView& index, std::int64_t b, std::int64_t i, std::int64_t j) {
  const std::int64_t t = position(index, b, i);
  const std::int64_t p = position(index, b, j);
  return t >= 0 && p >= 0 && flag_at(index.sees, offset(index.sees, b, i, j)) && p <= t && (index.window == 0 || t - p < index.window);
}

/// B1-B4.
QUIRE_DEVICE bool sees(const IndexView& index, std::int64_t b, std::int64_t i, std::int64_t column, std::int64_t least) {
  if (column < 0 || column >= all_columns(index)) return false;
  if (column >= table_columns(index)) return sees_draft_token(index, b, i, column - table_columns(index));
  const Range range = seen_range(index, b, i, least);
  return column >= range.begin && column < range.end;
}

/// A8: the column that a token chose c-th.
QUIRE_DEVICE std::int64_t choice_of(const IndexView& index, std::int64_t b, std::int64_t i, std::int64_t c) {
  return integer_at(index.columns, offset(index.columns, b, i, c));
}

/// C7: on a whole index the place of the token whose values a column holds, in blocks the one that closes the block; -1 where there is
/// none.
QUIRE_DEVICE std::int64_t token_of_column(const IndexView& index, std::int64_t b, std::int64_t column) {
  if (index.block_size == 1) return column;
  // A5: padding is on the left, so the last place holds the lane's greatest position.
  const std::int64_t seq = seq_of(index), last = position(index, b, seq - 1);
  const std::int64_t t = column * index.block_size + index.block_size - 1;
  return t <= last && last - t < seq ? seq - 1 - (last - t) : -1;
}

/// Where the row of a table column stands: in a pool, among the call's own values, or nowhere (it reads as zero; a hole, D2).
struct Place {
  enum In : std::int32_t { nowhere, pool, call } in = nowhere;
  std::int64_t number = 0;
};
QUIRE_DEVICE Place place_of(const IndexView& index, std::int64_t b, std::int64_t column, std::int64_t slots) {
  const std::int64_t number = is_tabled(index) ? slot_of(index, b, column, slots) : token_of_column(index, b, column);
  if (number < 0) return {};
  return {is_tabled(index) ? Place::pool : Place::call, number};
}

}  // namespace quire::gpu
