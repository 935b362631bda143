// Tables of slots and of states.
#include "tables.h"

#include <algorithm>
#include <utility>

namespace quire::replay {

namespace {

Tensor unallocated(std::int64_t rows, std::int64_t columns) {
  Tensor table = Tensor::empty(DType::i64, {rows, columns}, "--lanes");
  std::fill_n(table.data<std::int64_t>(), table.elements(), -1);
  return table;
}

}  // namespace

Tables::Tables(std::int64_t rows, std::int64_t context, std::int64_t page_size)
    : page_size_(page_size), slots_(unallocated(rows, context)), states_(unallocated(rows, (context + page_size - 1) / page_size)) {}

std::int64_t Tables::bytes() const { return 8 * (slots_.elements() + states_.elements()); }

void Tables::name_page(std::int64_t row, std::int64_t j, const Page& page) {
  const std::int64_t first = j * page_size_, count = std::min(page_size_, context() - first);
  std::copy_n(page.slots.data(), count, slots_.data<std::int64_t>() + row * context() + first);
  name_state(row, j, page.state);
}

void Tables::name_slot(std::int64_t row, std::int64_t position, std::int64_t slot) { slots_.data<std::int64_t>()[row * context() + position] = slot; }

void Tables::name_state(std::int64_t row, std::int64_t j, std::int64_t state) { states_.data<std::int64_t>()[row * states_.size(1) + j] = state; }

void Tables::clear(std::int64_t row) {
  std::fill_n(slots_.data<std::int64_t>() + row * context(), context(), -1);
  std::fill_n(states_.data<std::int64_t>() + row * states_.size(1), states_.size(1), -1);
}

Index Tables::index(Tensor pos, Tensor row) const { return Index::make(std::move(pos), slots_, std::move(row), {{page_size_, states_}}); }

}  // namespace quire::replay
