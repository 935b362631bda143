// Reading an index on the host: laws A2, B1-B5, B7, C3, C7, one function each.
#include <quire/index_view.h>

#include <algorithm>

namespace quire {

IntegerView::IntegerView(const quire_tensor* tensor) {
  if (tensor == nullptr) return;
  static constexpr std::int64_t nothing = 0;
  data_ = tensor->data != nullptr ? tensor->data : &nothing;  // an empty tensor is defined too
  wide_ = tensor->dtype == QUIRE_I64;
  for (int axis = 0; axis < tensor->rank && axis < 3; ++axis) {
    shape_[axis] = tensor->shape[axis];
    strides_[axis] = tensor->strides[axis];
  }
}

IndexView::IndexView(const quire_index& index)
    : kind_(index.kind),
      batch_(index.pos->shape[0]),
      seq_(index.pos->shape[1]),
      block_size_(index.reads),
      window_(index.window),
      row_(index.row),
      selection_(index.columns),
      draft_slots_(index.slots),
      sees_(index.sees) {
  if (is_tabled()) {
    rows_ = index.table->shape[0];
    positions_context_ = index.table->shape[1];
    const quire_tensor* read = index.table;
    for (std::int64_t i = 0; i < index.block_table_count; ++i) {
      if (index.block_tables[i].block_size == block_size_) read = index.block_tables[i].blocks;
    }
    table_ = IntegerView(read);
    table_columns_ = read->shape[1];
  } else {
    rows_ = batch_;
    positions_context_ = seq_;
    table_columns_ = seq_ / block_size_ + (seq_ % block_size_ != 0 ? 1 : 0);  // B3
  }
  // A2: any negative position is padding, and so is every token of a lane whose row is -1.
  const IntegerView pos(index.pos);
  positions_.resize(static_cast<std::size_t>(batch_ * seq_));
  least_.assign(static_cast<std::size_t>(batch_), -1);
  greatest_.assign(static_cast<std::size_t>(batch_), -1);
  for (std::int64_t b = 0; b < batch_; ++b) {
    const bool lane_is_padding = row_.defined() && row_(b) == -1;
    for (std::int64_t i = 0; i < seq_; ++i) {
      const std::int64_t t = lane_is_padding ? -1 : std::max<std::int64_t>(pos(b, i), -1);
      positions_[static_cast<std::size_t>(b * seq_ + i)] = t;
      if (t < 0) continue;
      auto& least = least_[static_cast<std::size_t>(b)];
      auto& greatest = greatest_[static_cast<std::size_t>(b)];
      least = least < 0 ? t : std::min(least, t);
      greatest = std::max(greatest, t);
    }
  }
}

std::int64_t IndexView::slot(std::int64_t b, std::int64_t column) const {
  if (!row_in_table(b)) return -1;
  return std::max<std::int64_t>(table_(row(b), column), -1);
}

std::int64_t IndexView::target_column(std::int64_t b, std::int64_t i) const {
  const std::int64_t t = position(b, i);
  if (t < 0 || !is_tabled()) return -1;
  if (is_draft()) return table_columns_ + i;
  if (t % block_size_ != block_size_ - 1) return -1;  // only a block's last token has a column
  const std::int64_t column = t / block_size_;
  return column < table_columns_ ? column : -1;  // B7
}

std::int64_t IndexView::target(std::int64_t b, std::int64_t i) const {
  const std::int64_t column = target_column(b, i);
  if (column < 0) return -1;
  if (is_draft()) return std::max<std::int64_t>(draft_slots_(b, i), -1);
  return slot(b, column);
}

bool IndexView::draft_sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
  const auto* flags = static_cast<const std::uint8_t*>(sees_->data);
  return flags[b * sees_->strides[0] + i * sees_->strides[1] + j * sees_->strides[2]] != 0;
}

ColumnRange IndexView::table_range(std::int64_t b, std::int64_t i) const {
  const std::int64_t t = position(b, i);
  if (t < 0) return {};
  // p_j <= t with p_j = j*m + m - 1: j < (t + 1) / m. Written without t + 1, which overflows at the greatest position.
  const std::int64_t m = block_size_;
  std::int64_t end = t / m >= table_columns_ ? table_columns_ : t / m + (t % m == m - 1 ? 1 : 0);
  if (is_draft()) end = std::min(end, least(b));  // B4: before the lane's least position (m is 1 here)
  std::int64_t begin = 0;
  if (has_window() && t >= window_) {
    // p_j > t - w: the first j with j*m + m - 1 >= t - w + 1, which is (t - w + 1) / m.
    begin = (t - window_ + 1) / m;
  }
  end = std::min(end, table_columns_);
  return begin < end ? ColumnRange{begin, end} : ColumnRange{};
}

ColumnRange IndexView::token_range(std::int64_t b, std::int64_t i) const {
  // B2: tokens of one sequence stand side by side, so position p of token i's sequence is at place i - t + p.
  const std::int64_t t = position(b, i);
  if (t < 0) return {};
  const std::int64_t first = has_window() && t >= window_ ? t - window_ + 1 : 0;
  return {i - t + first, i + 1};
}

bool IndexView::sees_draft_token(std::int64_t b, std::int64_t i, std::int64_t j) const {
  const std::int64_t t = position(b, i);
  const std::int64_t p = position(b, j);
  return t >= 0 && p >= 0 && draft_sees(b, i, j) && p <= t && (!has_window() || t - p < window_);
}

bool IndexView::sees(std::int64_t b, std::int64_t i, std::int64_t column) const {
  if (column < 0 || column >= columns()) return false;
  if (column >= table_columns_) return sees_draft_token(b, i, column - table_columns_);
  const bool reads_tokens = !is_tabled() && block_size_ == 1;
  const ColumnRange range = reads_tokens ? token_range(b, i) : table_range(b, i);
  return column >= range.begin && column < range.end;
}

std::int64_t IndexView::closing_token(std::int64_t b, std::int64_t block) const {
  // A whole lane holds positions 0 .. greatest, its last token at place S - 1.
  const std::int64_t t = column_position(block);
  const std::int64_t last = greatest(b);
  return t <= last ? seq_ - 1 - (last - t) : -1;
}

}  // namespace quire
