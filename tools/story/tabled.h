// Tabled: what layouts with a table of slots have in common.
#pragma once

#include "layouts.h"

namespace quire::story {

/// Tokens of one lane of a call and where they stand; the lane's sequence is a row of the table.
struct Lane {
  std::int64_t row = 0;
  std::vector<std::int64_t> positions;
  Tokens tokens;
};

class Tabled : public Layout {
 protected:
  /// The pools have a slot per slot of `slots`; there is one sequence, of no tokens.
  Tabled(const Setup& setup, Slots slots);

  Counts counts() const override;

  /// A token of a sequence and its position's slot, -1 where there is none.
  struct Sequence {
    Tokens tokens;
    std::vector<std::int64_t> table;
  };
  std::int64_t length(std::size_t row) const {
    return static_cast<std::int64_t>(sequences_[row].tokens.size());
  }
  /// Gives position `position` of a sequence a slot where it has none.
  virtual void allocate(std::size_t row, std::int64_t position);
  /// Gives back the slot of a position.
  void release(std::size_t row, std::int64_t position);
  /// A new sequence that names the slots of another.
  void fork(std::size_t row);

  /// Appends tokens to a sequence, with slots, and returns the lane that evaluates them.
  Lane append(std::size_t row, std::span<const Token> tokens);
  /// The lane of a sequence's tokens [begin, end).
  Lane lane(std::size_t row, std::int64_t begin, std::int64_t end) const;
  /// Lanes as an index, padded on the left.
  Index index_of(std::span<const Lane> lanes) const;
  /// Evaluates lanes in one call; the logits after the last token of each.
  std::vector<Logits> call(std::span<const Lane> lanes);
  /// Hook: the index that the call is made with.
  virtual Index adapt(Index index) { return index; }

  Slots slots_;
  std::vector<Sequence> sequences_;
};

std::unique_ptr<Layout> make_draft(const Setup& setup);
std::unique_ptr<Layout> make_packed(const Setup& setup);
/// `shared` and `forked`.
std::unique_ptr<Layout> make_branches(const Setup& setup, bool part);

}  // namespace quire::story
