// The literal implementation of B: what a token sees, and where a column's entry is.
#include <algorithm>

#include "literal_parts.h"

namespace quire_literal {

// The table the index reads: of positions, or of its blocks. None on a whole index.
const Tensor* table_read(const Index& x) {
  if (!x.tabled()) return nullptr;
  if (x.reads == 1) return &*x.table;
  for (const BlockTable& blocks : x.every) {
    if (blocks.size == x.reads) return &blocks.blocks;
  }
  return nullptr;
}

// B3: on a whole index read in blocks there are ceil(S/m) columns; on a table, its columns.
Int table_width(const Index& x) {
  if (x.tabled()) return table_read(x)->shape[1];
  const Int m = x.reads;
  return x.seq() / m + (x.seq() % m == 0 ? 0 : 1);
}

// A10: in blocks of m, column j stands at position j*m+m-1; for m = 1 that is j itself.
Wide column_position(const Index& x, Int j) {
  const Wide m = x.reads;
  return Wide(j) * m + m - 1;
}

// A1, A2: the slot of column j of the lane's sequence, -1 when it has none or its row none.
Int column_slot(const Index& x, Int b, Int j) {
  const Tensor& table = *table_read(x);
  const Int row = lane_row(x, b);
  if (row < 0 || row >= table.shape[0]) return -1;
  return int_at(table, {row, j});
}

namespace {

// A7: only the last w positions at or before the token's own.
bool in_window(const Index& x, Wide p, Int t) {
  if (!x.window) return true;
  return p > Wide(t) - Wide(*x.window);
}

// The least position among the lane's real tokens.
Int least_position(const Index& x, Int b) {
  Int least = INT64_MAX;
  for (Int i = 0; i < x.seq(); ++i) {
    if (real_token(x, b, i)) least = std::min(least, position(x, b, i));
  }
  return least;
}

// B1: the token sees column j when it is not padding, p_j <= t, and under a window p_j > t - w.
bool sees_by_position(const Index& x, Int b, Int i, Int j) {
  if (!real_token(x, b, i)) return false;
  const Int t = position(x, b, i);
  return column_position(x, j) <= Wide(t) && in_window(x, column_position(x, j), t);
}

// B2: token i sees token j when both are real, they are of the same sequence (j - p_j == i - p_i),
// p_j <= p_i, and the window holds.
bool sees_in_lane(const Index& x, Int b, Int i, Int j) {
  if (!real_token(x, b, i) || !real_token(x, b, j)) return false;
  const Int p_i = position(x, b, i);
  const Int p_j = position(x, b, j);
  return j - p_j == i - p_i && p_j <= p_i && in_window(x, p_j, p_i);
}

// B4: a table column when it stands before the lane's least position, at or before t, and in the
// window.
bool sees_before_draft(const Index& x, Int b, Int i, Int j) {
  return sees_by_position(x, b, i, j) && column_position(x, j) < Wide(least_position(x, b));
}

// B4: token column j when sees[b,i,j], j is real, p_j <= p_i, and the window holds.
bool sees_draft_token(const Index& x, Int b, Int i, Int j) {
  if (!real_token(x, b, i) || !real_token(x, b, j)) return false;
  const Int p_i = position(x, b, i);
  const Int p_j = position(x, b, j);
  return int_at(*x.sees, {b, i, j}) != 0 && p_j <= p_i && in_window(x, p_j, p_i);
}

}  // namespace

// B1-B4 by the kind of index. Under a draft columns C and up are the call's tokens.
bool sees_column(const Index& x, Int b, Int i, Int j) {
  if (x.draft()) {
    const Int width = table_width(x);
    return j < width ? sees_before_draft(x, b, i, j) : sees_draft_token(x, b, i, j - width);
  }
  if (!x.tabled() && x.reads == 1) return sees_in_lane(x, b, i, j);
  return sees_by_position(x, b, i, j);  // B1, and B3's columns by position
}

// How many entries a token reads: the mask's last axis.
Int entries(const Index& x) {
  if (x.columns) return x.columns->shape[2];
  return x.draft() ? table_width(x) + x.seq() : table_width(x);
}

// The column that entry c of a token is: itself, or the chosen one (A8), perhaps none (B5).
Int entry_column(const Index& x, Int b, Int i, Int c) {
  return x.columns ? int_at(*x.columns, {b, i, c}) : c;
}

// B5: entry c is seen when the token sees the column it chose; a choice outside [0,C) is not seen.
bool sees_entry(const Index& x, Int b, Int i, Int c) {
  const Int column = entry_column(x, b, i, c);
  if (x.columns && (column < 0 || column >= table_width(x))) return false;
  return sees_column(x, b, i, column);
}

// B6: B1-B5 as a bool tensor.
Tensor mask(const Index& x) {
  Tensor seen = zeros("bool", {x.lanes(), x.seq(), entries(x)});
  seen.integer.clear();
  for (Int b = 0; b < x.lanes(); ++b) {
    for (Int i = 0; i < x.seq(); ++i) {
      for (Int c = 0; c < entries(x); ++c) seen.integer.push_back(sees_entry(x, b, i, c) ? 1 : 0);
    }
  }
  return seen;
}

// C7: on a whole index column j holds the value of token j, or of the token that closes block j.
std::optional<Int> closing_token(const Index& x, Int b, Int j) {
  if (x.reads == 1) return j;
  for (Int i = 0; i < x.seq(); ++i) {
    if (real_token(x, b, i) && Wide(position(x, b, i)) == column_position(x, j)) return i;
  }
  return std::nullopt;
}

// C3: a real token stores at table[row,t]; under a draft at slots[b,i]; under every(m) only when
// (t+1) % m == 0, at blocks[row, t/m]. B7: past the last column it stores nothing. -1 for none.
Int target(const Index& x, Int b, Int i) {
  if (!x.tabled() || !real_token(x, b, i)) return -1;
  if (x.draft()) return int_at(*x.slots, {b, i});
  const Int t = position(x, b, i);
  const Int m = x.reads;
  if (t % m != m - 1) return -1;
  if (t / m >= table_width(x)) return -1;
  return column_slot(x, b, t / m);
}

void op_mask(Fields& fields, Result& result) { result.add("mask", mask(parse_index(fields))); }

}  // namespace quire_literal
