// The recurrence under a draft: every token goes on from its parent's unrounded state (law F2).
#include "gdn_calls.h"
#include "ops.h"
#include "parallel.h"

#include <memory>
#include <vector>

namespace quire::reference {

namespace {

class Verify {
 public:
  explicit Verify(const quire_gdn_verify_args& args)
      : operands_(operands_of(args)), view_(*args.index), pool_(args.state_pool), read_(args.state_indices), slots_(args.state_slots) {}

  void run() {
    std::vector<DraftTree> trees;
    for (std::int64_t b = 0; b < view_.batch(); ++b) trees.push_back(draft_tree(view_, b));
    const std::int64_t heads = operands_.heads();
    const double work = static_cast<double>(view_.batch() * view_.seq() * heads) * static_cast<double>(operands_.key_size() * operands_.value_size()) * 4;
    parallel_for(view_.batch() * heads, work, [&](std::int64_t task) { run_head(task / heads, task % heads, trees[static_cast<std::size_t>(task / heads)]); });
  }

 private:
  void run_head(std::int64_t b, std::int64_t head, DraftTree tree) const {
    const bool padded = !row_in(pool_, read_(b));  // E6
    for (std::int64_t i = 0; i < view_.seq(); ++i) {
      if (padded || !view_.is_real(b, i)) operands_.output.clear_row(3, operands_.output.at(b, i, head));
    }
    if (padded || tree.order.empty()) return;
    const auto fresh = [&] { return std::make_shared<HeadState>(operands_.value_size(), operands_.key_size()); };
    const std::shared_ptr<HeadState> root = fresh();
    root->load(pool_, read_(b), head);  // read before anything is stored
    std::vector<std::shared_ptr<HeadState>> states(static_cast<std::size_t>(view_.seq()));
    HeadInputs inputs(operands_, head);
    for (const std::int64_t i : tree.order) {
      const std::int64_t parent = tree.parents[static_cast<std::size_t>(i)];
      const std::shared_ptr<HeadState>& before = parent < 0 ? root : states[static_cast<std::size_t>(parent)];
      const auto state = std::make_shared<HeadState>(*before);
      const TokenPlace token{b, i};
      inputs.load(token);
      state->step(inputs, operands_.scale, kernels());
      inputs.store_output(token);
      state->store(pool_, slots_(b, i), head);
      if (tree.children[static_cast<std::size_t>(i)] > 0) states[static_cast<std::size_t>(i)] = state;
      if (parent >= 0 && --tree.children[static_cast<std::size_t>(parent)] == 0) states[static_cast<std::size_t>(parent)].reset();
    }
  }

  GdnOperands operands_;
  IndexView view_;
  RowView pool_;
  IntegerView read_, slots_;
};

}  // namespace

void gdn_verify(const quire_gdn_verify_args& args) { Verify(args).run(); }

}  // namespace quire::reference
