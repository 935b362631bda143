// The literal implementation of C: extend, what a call stores and what it reads.
#include "literal_extend.h"

namespace quire_literal {

Source column_source(const Index& x, Int b, Int j, Int slots) {
  if (!x.tabled()) {
    const std::optional<Int> token = closing_token(x, b, j);
    return token ? Source{From::token, *token} : Source{From::nothing, 0};
  }
  const Int width = table_width(x);
  if (j >= width) return {From::token, j - width};
  const Int slot = column_slot(x, b, j);
  if (slot < 0 || slot >= slots) return {From::nothing, 0};
  return {From::slot, slot};
}

// C3, C4: every real token's row goes to its target; a target that addresses nothing drops it.
void store(const Index& x, const Tensor& values, Tensor& pool) {
  const Int width = row_width(values, 2);
  for (Int b = 0; b < x.lanes(); ++b) {
    for (Int i = 0; i < x.seq(); ++i) {
      const Int slot = target(x, b, i);
      if (slot < 0 || slot >= pool.shape[0]) continue;
      copy_row(values, b * x.seq() + i, pool, slot, width);
    }
  }
}

namespace {

// Copies a column's entry, or leaves the zero where nothing is behind the column.
void copy_entry(const Index& x, const Tensor& values, const Tensor* pool, Int b, Int j,
                Tensor& seen, Int seen_row) {
  const Int width = row_width(values, 2);
  const Source from = column_source(x, b, j, pool == nullptr ? 0 : pool->shape[0]);
  if (from.where == From::slot) copy_row(*pool, from.place, seen, seen_row, width);
  if (from.where == From::token) {
    copy_row(values, b * x.seq() + from.place, seen, seen_row, width);
  }
}

bool any_token_sees(const Index& x, Int b, Int j) {
  for (Int i = 0; i < x.seq(); ++i) {
    if (sees_column(x, b, i, j)) return true;
  }
  return false;
}

std::vector<Int> with_row_shape(std::vector<Int> shape, const Tensor& values) {
  shape.insert(shape.end(), values.shape.begin() + 2, values.shape.end());
  return shape;
}

// C6, C7: seen[b,i,c] is the chosen column's row, zero when the token does not see it or it is
// unallocated.
Tensor seen_by_selection(const Index& x, const Tensor& values, const Tensor* pool) {
  const Int k = entries(x);
  Tensor seen = zeros(values.dtype, with_row_shape({x.lanes(), x.seq(), k}, values));
  for (Int b = 0; b < x.lanes(); ++b) {
    for (Int i = 0; i < x.seq(); ++i) {
      for (Int c = 0; c < k; ++c) {
        if (!sees_entry(x, b, i, c)) continue;
        const Int row = (b * x.seq() + i) * k + c;
        copy_entry(x, values, pool, b, entry_column(x, b, i, c), seen, row);
      }
    }
  }
  return seen;
}

// C5: seen[b,j] is the row of the column's slot when the column is allocated and some real token of
// the lane sees it, and zero otherwise. C7: under a draft the table part, then values, verbatim; on
// a whole index values, verbatim, or those of the tokens that close the blocks.
Tensor seen_by_lane(const Index& x, const Tensor& values, const Tensor* pool) {
  const Int columns = entries(x);
  Tensor seen = zeros(values.dtype, with_row_shape({x.lanes(), columns}, values));
  for (Int b = 0; b < x.lanes(); ++b) {
    for (Int j = 0; j < columns; ++j) {
      const bool from_table = x.tabled() && j < table_width(x);
      if (from_table && !any_token_sees(x, b, j)) continue;
      copy_entry(x, values, pool, b, j, seen, b * columns + j);
    }
  }
  return seen;
}

}  // namespace

Int row_width(const Tensor& tensor, std::size_t from_axis) {
  Int width = 1;
  for (std::size_t axis = from_axis; axis < tensor.shape.size(); ++axis) {
    width *= tensor.shape[axis];
  }
  return width;
}

// C2: stores come before reads.
Tensor extend(const Index& x, const Tensor& values, Tensor* pool) {
  if (x.tabled()) store(x, values, *pool);
  return x.columns ? seen_by_selection(x, values, pool) : seen_by_lane(x, values, pool);
}

void op_extend(Fields& fields, Result& result) {
  const Index x = parse_index(fields);
  const Tensor values = *fields.tensor("values");
  if (values.rank() < 2 || values.shape[0] != x.lanes() || values.shape[1] != x.seq()) {
    reject("values", "not [B,S,...]");
  }
  const Shared pool = x.tabled() ? fields.tensor("pool") : fields.optional_tensor("pool");
  if (x.tabled()) {
    const std::vector<Int> row(values.shape.begin() + 2, values.shape.end());
    if (pool->dtype != values.dtype) reject("pool", "dtype differs from values");
    if (pool->rank() < 1 || std::vector<Int>(pool->shape.begin() + 1, pool->shape.end()) != row) {
      reject("pool", "rows differ from those of values");
    }
  }
  result.add("seen", extend(x, values, pool.get()));
  if (pool) result.add("pool", pool);
}

}  // namespace quire_literal
