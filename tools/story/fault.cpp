// Faults: planting them in an index.
#include "fault.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace quire::story {

Fault fault_named(std::string_view name) {
  if (name.empty() || name == "none") return Fault::none;
  if (name == "hole") return Fault::hole;
  if (name == "swap") return Fault::swap;
  if (name == "future") return Fault::future;
  if (name == "stale") return Fault::stale;
  throw std::runtime_error("fault \"" + std::string(name) +
                           "\" is unknown; allowed: hole, swap, future, stale");
}

namespace {

// Attention weighs a set of columns, so an exchange of two stored ones changes nothing. The store
// at `from` goes to the slot of an earlier token instead, whose column is left with a slot that
// nobody wrote.
constexpr std::int64_t swap_distance = 10;

void plant_in_row(Fault fault, std::int64_t from, std::int64_t* row) {
  switch (fault) {
    case Fault::hole:
      row[0] = -1;
      break;
    case Fault::swap:
      std::swap(row[from], row[std::max<std::int64_t>(0, from - swap_distance)]);
      break;
    case Fault::stale:
      std::copy_n(row, from / 2, row + (from + 1) / 2);
      break;
    case Fault::future:
    case Fault::none:
      break;
  }
}

}  // namespace

Index plant(Fault fault, std::int64_t from, const Index& index) {
  const bool in_draft = index.draft_tokens() && (fault == Fault::swap || fault == Fault::future);
  if (fault == Fault::none || in_draft) return index;
  Tensor pos = index.pos().clone(), table = index.table().clone();
  const std::span positions(pos.data<std::int64_t>(), static_cast<std::size_t>(pos.elements()));
  if (*std::max_element(positions.begin(), positions.end()) < from || from < 1) return index;
  const std::int64_t columns = table.size(1);
  if (fault == Fault::future) {
    for (std::int64_t& position : positions) {
      if (position >= from && position + 1 < columns) ++position;
    }
  } else {
    for (std::int64_t r = 0; r < table.size(0); ++r)
      plant_in_row(fault, from, table.data<std::int64_t>() + r * columns);
  }
  Index planted = Index::make(std::move(pos), std::move(table), index.row());
  if (index.columns().defined()) return planted.select(index.columns());
  return index.draft_tokens()
             ? planted.draft(index.draft_tokens()->slots, index.draft_tokens()->sees)
             : planted;
}

}  // namespace quire::story
