// Layouts of two sequences that name the same slots for what they have in common: shared, forked.
#include "tabled.h"

#include <algorithm>

namespace quire::story {

namespace {

/// One sequence until the fork; then two rows of the table, each with slots of its own for its
/// later tokens, one lane each.
class Branches final : public Tabled {
 public:
  Branches(const Setup& setup, bool part)
      : Tabled(setup, Slots(2 * setup.context)),
        part_(part),
        fork_at_(part ? setup.context / 2 : std::min(shared_prefix, setup.context / 2)) {}

  bool branches_part() const override { return part_; }

  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    std::vector<Lane> lanes;
    for (std::size_t row = 0; row < next.size(); ++row) {
      if (!next[row].empty()) lanes.push_back(append(row, next[row]));
    }
    std::vector<Logits> fed = call(lanes), logits(next.size());
    for (std::size_t b = 0; b < lanes.size(); ++b)
      logits[static_cast<std::size_t>(lanes[b].row)] = std::move(fed[b]);
    if (sequences_.size() == 1 && length(0) >= fork_at_ && length(0) < setup_.context) {
      fork(0);
      logits.push_back(logits.front());
    }
    return logits;
  }

 private:
  static constexpr std::int64_t shared_prefix = 24;
  bool part_;
  std::int64_t fork_at_;
};

}  // namespace

std::unique_ptr<Layout> make_branches(const Setup& setup, bool part) {
  return std::make_unique<Branches>(setup, part);
}

}  // namespace quire::story
