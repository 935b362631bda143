// Reading an index on the host: which slot a token stores at and which columns it sees (laws A2, B1-B5, C3).
#pragma once

#include <quire/backend.h>

#include <cstdint>
#include <vector>

namespace quire {

/// Elements of a 1-, 2- or 3-axis integer tensor on the host, i32 or i64, any strides.
class IntegerView {
 public:
  IntegerView() = default;
  explicit IntegerView(const quire_tensor* tensor);
  bool defined() const { return data_ != nullptr; }
  std::int64_t size(int axis) const { return shape_[axis]; }
  std::int64_t operator()(std::int64_t i) const { return at(i * strides_[0]); }
  std::int64_t operator()(std::int64_t i, std::int64_t j) const { return at(i * strides_[0] + j * strides_[1]); }
  std::int64_t operator()(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return at(i * strides_[0] + j * strides_[1] + k * strides_[2]);
  }

 private:
  std::int64_t at(std::int64_t offset) const {
    return wide_ ? static_cast<const std::int64_t*>(data_)[offset] : static_cast<const std::int32_t*>(data_)[offset];
  }
  const void* data_ = nullptr;
  bool wide_ = true;
  std::int64_t shape_[3] = {0, 0, 0};
  std::int64_t strides_[3] = {0, 0, 0};
};

/// A half-open range of columns.
struct ColumnRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The laws of one index, asked token by token. Reads the tensors in place; the index must outlive the view.
class IndexView {
 public:
  explicit IndexView(const quire_index& index);

  std::int64_t batch() const { return batch_; }
  std::int64_t seq() const { return seq_; }
  std::int64_t rows() const { return rows_; }
  /// Columns of the table read (of the lane's tokens or blocks on a whole index), without a draft's tokens.
  std::int64_t table_columns() const { return table_columns_; }
  /// With a draft's tokens: the columns of `mask`.
  std::int64_t columns() const { return table_columns_ + (is_draft() ? seq_ : 0); }
  /// Choices per token, 0 without a selection.
  std::int64_t choices() const { return selection_.defined() ? selection_.size(2) : 0; }
  std::int64_t block_size() const { return block_size_; }
  bool is_tabled() const { return kind_ == QUIRE_INDEX_TABLED; }
  bool is_draft() const { return sees_ != nullptr; }
  bool is_selecting() const { return selection_.defined(); }
  bool has_window() const { return window_ > 0; }
  std::int64_t window() const { return window_; }

  /// A2: position of a token, -1 where it is padding.
  std::int64_t position(std::int64_t b, std::int64_t i) const { return positions_[static_cast<std::size_t>(b * seq_ + i)]; }
  bool is_real(std::int64_t b, std::int64_t i) const { return position(b, i) >= 0; }
  /// The lane's least and greatest real positions; -1 for a lane of padding.
  std::int64_t least(std::int64_t b) const { return least_[static_cast<std::size_t>(b)]; }
  std::int64_t greatest(std::int64_t b) const { return greatest_[static_cast<std::size_t>(b)]; }
  /// The number that `row` gives the lane (b itself without `row`), in the table or not.
  std::int64_t row(std::int64_t b) const { return row_.defined() ? row_(b) : b; }
  bool row_in_table(std::int64_t b) const { return row(b) >= 0 && row(b) < rows_; }

  /// The slot that the table read names for a column, -1 where the row or the entry addresses nothing whatever the pool (A2). Tabled only.
  std::int64_t slot(std::int64_t b, std::int64_t column) const;
  /// The entry of the table read, as it stands. Tabled only.
  std::int64_t entry(std::int64_t r, std::int64_t column) const { return table_(r, column); }
  /// C3: the slot at which a token stores, -1 where it stores nothing. Tabled only.
  std::int64_t target(std::int64_t b, std::int64_t i) const;
  /// The column at which a token stores: its position or its block's; under a draft C + i; -1 where there is none (C3, B7).
  std::int64_t target_column(std::int64_t b, std::int64_t i) const;
  /// A draft's slot of a token as given.
  std::int64_t draft_slot(std::int64_t b, std::int64_t i) const { return draft_slots_(b, i); }
  /// sees[b, i, j] as given.
  bool draft_sees(std::int64_t b, std::int64_t i, std::int64_t j) const;
  /// The column that a selecting token chose c-th, as given.
  std::int64_t choice(std::int64_t b, std::int64_t i, std::int64_t c) const { return selection_(b, i, c); }

  /// The position at which a column stands: its position or its block's last.
  std::int64_t column_position(std::int64_t column) const { return column * block_size_ + block_size_ - 1; }
  /// B1, B3, B4: the table's columns (on a whole index read in blocks, the blocks) that a token sees, one range; empty for padding.
  /// Not for a whole index of positions, whose columns are tokens.
  ColumnRange table_range(std::int64_t b, std::int64_t i) const;
  /// B2: on a whole or packed index of positions, the places of the lane's tokens that a token sees: one range.
  ColumnRange token_range(std::int64_t b, std::int64_t i) const;
  /// B4: whether draft token i sees draft token j.
  bool sees_draft_token(std::int64_t b, std::int64_t i, std::int64_t j) const;
  /// B1-B4: whether a token sees a column of `columns()`.
  bool sees(std::int64_t b, std::int64_t i, std::int64_t column) const;
  /// C7: on a whole index in blocks, the place of the token that closes a block; -1 where none does.
  std::int64_t closing_token(std::int64_t b, std::int64_t block) const;

 private:
  int kind_;
  std::int64_t batch_, seq_, rows_ = 0, positions_context_ = 0, table_columns_ = 0, block_size_, window_;
  IntegerView table_;  // the one read: the positions' or the block's
  IntegerView row_, selection_, draft_slots_;
  const quire_tensor* sees_ = nullptr;
  std::vector<std::int64_t> positions_, least_, greatest_;
};

}  // namespace quire
