// Who sees what: the laws are IndexView's; here is how each can be got wrong.
#include "sight.h"

#include <algorithm>

namespace quire::conformance::honest {

// Every branch is a fault's; what falls through is the law.
bool Sight::sees_wrongly(std::int64_t b, std::int64_t i, std::int64_t column) const {
  const std::int64_t t = view_.position(b, i);
  const bool tabled = view_.is_tabled() && column < view_.table_columns();
  const std::int64_t m = view_.block_size();
  const std::int64_t place = column - view_.table_columns();  // of a draft's token
  const bool reads_tokens = !view_.is_tabled() && m == 1;
  switch (setting_.fault) {
    case Fault::block_seen_from_its_start:
      if (m > 1) return t >= 0 && column * m <= t && in_window(b, i, view_.column_position(column));
      break;
    case Fault::block_window_from_first_position:
      if (m > 1) return view_.sees(b, i, column) && in_window(b, i, column * m);
      break;
    case Fault::own_column_unseen:
      if (tabled) return view_.sees(b, i, column) && view_.column_position(column) != t;
      break;
    case Fault::next_column_seen:
      if (tabled && m == 1 && !view_.is_draft()) return view_.sees(b, i, column) || (t >= 0 && column == t + 1);
      break;
    case Fault::first_column_always_seen:
      if (tabled && m == 1) return view_.sees(b, i, column) || (column == 0 && t >= 0 && (!view_.is_draft() || view_.least(b) > 0));
      break;
    case Fault::draft_sees_siblings:
      if (view_.is_draft() && place >= 0) {
        const std::int64_t p = view_.position(b, place);
        return t >= 0 && p >= 0 && (p < t || place == i || (p == t && place < i)) && in_window(b, i, p);
      }
      break;
    case Fault::draft_in_order_of_places:
      if (view_.is_draft() && place >= 0) {
        return t >= 0 && view_.is_real(b, place) && place <= i && in_window(b, i, view_.position(b, place));
      }
      break;
    case Fault::draft_reads_table_to_its_position:
      if (view_.is_draft() && place < 0) return t >= 0 && column <= t && in_window(b, i, column);
      break;
    case Fault::draft_ignores_window:
      if (view_.is_draft() && place >= 0) {
        const std::int64_t p = view_.position(b, place);
        return t >= 0 && p >= 0 && p <= t && view_.draft_sees(b, i, place);
      }
      break;
    case Fault::packed_sees_across:
      if (reads_tokens) {
        return t >= 0 && view_.is_real(b, column) && column <= i && (!view_.has_window() || i - column < view_.window());
      }
      break;
    case Fault::whole_sees_padding:
      if (reads_tokens) {
        return t >= 0 && column <= i && (!view_.is_real(b, column) || view_.sees(b, i, column)) &&
               (!view_.has_window() || i - column < view_.window());
      }
      break;
    default: break;
  }
  return view_.sees(b, i, column);
}

bool Sight::sees(std::int64_t b, std::int64_t i, std::int64_t column) const {
  if (setting_.fault != Fault::none && column >= 0 && column < view_.columns()) return sees_wrongly(b, i, column);
  return view_.sees(b, i, column);
}

std::int64_t Sight::chosen(std::int64_t b, std::int64_t i, std::int64_t c) const {
  std::int64_t column = view_.choice(b, i, c);
  if (setting_.is(Fault::choices_clamped)) column = std::clamp<std::int64_t>(column, 0, view_.columns() - 1);
  if (setting_.is(Fault::choices_unchecked)) return view_.is_real(b, i) && column >= 0 && column < view_.columns() ? column : -1;
  return sees(b, i, column) ? column : -1;
}

std::vector<std::int64_t> Sight::columns_of(std::int64_t b, std::int64_t i) const {
  std::vector<std::int64_t> columns;
  if (!view_.is_selecting()) {
    for (std::int64_t j = 0; j < view_.columns(); ++j) {
      if (sees(b, i, j)) columns.push_back(j);
    }
    return columns;
  }
  for (std::int64_t c = 0; c < view_.choices(); ++c) {
    if (const std::int64_t column = chosen(b, i, c); column >= 0) columns.push_back(column);
  }
  if (setting_.is(Fault::duplicate_choices_once)) {
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  }
  return columns;
}

std::int64_t Sight::slot(std::int64_t b, std::int64_t column, std::int64_t slots) const {
  const std::int64_t slot = view_.slot(b, column);
  if (slot >= 0 && slot < slots) return slot;
  if (setting_.is(Fault::hole_reads_slot_zero) && slot < 0) return 0;
  if (setting_.is(Fault::slot_past_pool_clamped) && slot >= slots) return slots - 1;
  return -1;
}

std::int64_t Sight::target(std::int64_t b, std::int64_t i, std::int64_t slots) const {
  const std::int64_t t = view_.position(b, i);
  const std::int64_t m = view_.block_size();
  const std::int64_t row = view_.row(b);
  std::int64_t slot = view_.target(b, i);
  switch (setting_.fault) {
    case Fault::padding_stored_at_first_column:
      if (t < 0 && view_.row_in_table(b) && !view_.is_draft()) slot = view_.slot(b, 0);
      break;
    case Fault::padding_stored_at_last_slot:
      if (t < 0) slot = slots - 1;
      break;
    case Fault::dropped_store_at_slot_zero:
      if (t >= 0 && view_.target_column(b, i) >= 0 && slot < 0) slot = 0;
      break;
    case Fault::block_stored_at_its_first_token:
      if (m > 1) slot = t >= 0 && t % m == 0 && t / m < view_.table_columns() ? view_.slot(b, t / m) : -1;
      break;
    case Fault::every_token_stores_its_block:
      if (m > 1) slot = t >= 0 && t / m < view_.table_columns() ? view_.slot(b, t / m) : -1;
      break;
    case Fault::past_context_stored_at_last_column:
      if (!view_.is_draft() && t >= 0 && t / m >= view_.table_columns() && t % m == m - 1) slot = view_.slot(b, view_.table_columns() - 1);
      break;
    case Fault::past_context_in_next_row:
      if (!view_.is_draft() && t >= 0 && t / m >= view_.table_columns() && t % m == m - 1 && view_.row_in_table(b)) {
        // As a table without the check of the column's end is read.
        const std::int64_t flat = row * view_.table_columns() + t / m;
        if (flat / view_.table_columns() < view_.rows()) slot = view_.entry(flat / view_.table_columns(), flat % view_.table_columns());
      }
      break;
    case Fault::draft_stored_in_table:
      if (view_.is_draft() && t >= 0) slot = t < view_.table_columns() ? view_.slot(b, t) : -1;
      break;
    case Fault::draft_padding_stored:
      if (view_.is_draft() && t < 0) slot = view_.draft_slot(b, i);
      break;
    case Fault::slot_past_pool_clamped: slot = std::min(slot, slots - 1); break;
    default: break;
  }
  return slot >= 0 && slot < slots ? slot : -1;
}

std::int64_t Sight::closing_token(std::int64_t b, std::int64_t block) const {
  if (setting_.is(Fault::closing_token_without_padding)) {
    const std::int64_t place = view_.column_position(block);
    return place < view_.seq() ? place : -1;
  }
  return view_.closing_token(b, block);
}

}  // namespace quire::conformance::honest
