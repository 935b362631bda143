// The tables that every index of the engine names: one row per running request, changed in place between steps.
//
// An index shares these tensors (A13), so building one costs the step's tokens and not the table's size. An index is used in the step it
// was built for and no longer: its tables have moved on by the next.
#pragma once

#include "pages.h"

#include <quire/index.h>

#include <cstdint>

namespace quire::replay {

class Tables {
 public:
  /// -1 throughout: nothing is allocated.
  Tables(std::int64_t rows, std::int64_t context, std::int64_t page_size);

  std::int64_t rows() const { return slots_.size(0); }
  std::int64_t context() const { return slots_.size(1); }
  std::int64_t bytes() const;

  /// Positions j * page_size ... of a row stand in the page's slots, and block j in its state.
  void name_page(std::int64_t row, std::int64_t j, const Page& page);
  void name_slot(std::int64_t row, std::int64_t position, std::int64_t slot);
  void name_state(std::int64_t row, std::int64_t j, std::int64_t state);
  /// The row's request is gone.
  void clear(std::int64_t row);

  std::int64_t slot(std::int64_t row, std::int64_t position) const { return slots_.data<std::int64_t>()[row * context() + position]; }
  std::int64_t state(std::int64_t row, std::int64_t j) const { return states_.data<std::int64_t>()[row * states_.size(1) + j]; }

  /// A1: tokens at pos [B, S] of the table's rows row [B]; the block table of page_size names the states (F1).
  Index index(Tensor pos, Tensor row) const;

 private:
  std::int64_t page_size_;
  Tensor slots_;   // [rows, context]
  Tensor states_;  // [rows, ceil(context / page_size)]
};

}  // namespace quire::replay
