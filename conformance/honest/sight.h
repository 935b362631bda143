// What a token of the honest backend sees and where it stores (laws B, C3).
#pragma once

#include <quire/index_view.h>

#include "fault.h"

#include <vector>

namespace quire::conformance::honest {

class Sight {
 public:
  Sight(const quire_index& index, const Setting& setting) : view_(index), setting_(setting) {}

  const IndexView& view() const { return view_; }
  /// B1-B4, for a column of `columns()`.
  bool sees(std::int64_t b, std::int64_t i, std::int64_t column) const;
  /// B5: the column behind a choice, -1 where the token does not see it.
  std::int64_t chosen(std::int64_t b, std::int64_t i, std::int64_t c) const;
  /// The columns a token reads, in their order; a selection's in its own.
  std::vector<std::int64_t> columns_of(std::int64_t b, std::int64_t i) const;
  /// The slot of a pool of `slots` behind a table column, -1 for a hole.
  std::int64_t slot(std::int64_t b, std::int64_t column, std::int64_t slots) const;
  /// C3: the slot of a pool of `slots` at which a token stores, -1 where it stores nothing.
  std::int64_t target(std::int64_t b, std::int64_t i, std::int64_t slots) const;
  /// C7: on a whole index in blocks, the place of the token that closes a block; -1 where none does.
  std::int64_t closing_token(std::int64_t b, std::int64_t block) const;

 private:
  bool sees_wrongly(std::int64_t b, std::int64_t i, std::int64_t column) const;
  bool in_window(std::int64_t b, std::int64_t i, std::int64_t position) const {
    return !view_.has_window() || position > view_.position(b, i) - view_.window();
  }

  IndexView view_;
  Setting setting_;
};

}  // namespace quire::conformance::honest
