// gdn_verify in the honest backend: the recurrence along a draft's tree (law F2).
#include <quire/index_view.h>

#include "ops.h"
#include "rule.h"

#include <algorithm>
#include <numeric>

namespace quire::conformance::honest {

namespace {

class Verify {
 public:
  Verify(const quire_gdn_verify_args& args, const Setting& setting)
      : setting_(setting),
        tensors_(rule_tensors(args, 2, setting)),
        view_(*args.index),
        pool_(args.state_pool, setting),
        reads_(args.state_indices),
        slots_(args.state_slots) {}

  void run() {
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      for (std::int64_t head = 0; head < tensors_.heads(); ++head) run_head(b, head);
    }
  }

 private:
  bool is_candidate(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t p = view_.position(b, j), t = view_.position(b, i);
    if (p < 0 || p >= t || !view_.draft_sees(b, i, j)) return false;
    return !setting_.is(Fault::parent_within_window) || !view_.has_window() || p > t - view_.window();
  }

  // The token seen of greatest position below token i's own, -1 for none.
  std::int64_t parent(std::int64_t b, std::int64_t i) const {
    std::int64_t parent = -1;
    if (setting_.is(Fault::parent_is_token_before)) {
      for (std::int64_t j = 0; j < i; ++j) {
        if (view_.is_real(b, j)) parent = j;
      }
      return parent;
    }
    for (std::int64_t j = 0; j < view_.seq(); ++j) {
      if (!is_candidate(b, i, j)) continue;
      const bool first = setting_.is(Fault::parent_is_first_seen);
      if (parent < 0 || (view_.position(b, j) > view_.position(b, parent)) != first) parent = j;
    }
    return parent;
  }

  // Real tokens, parents before their children.
  std::vector<std::int64_t> order(std::int64_t b) const {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < view_.seq(); ++i) {
      if (view_.is_real(b, i)) order.push_back(i);
    }
    const bool sorts = !setting_.is(Fault::draft_in_place_order) && !setting_.is(Fault::parent_is_token_before);
    if (sorts)
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t i, std::int64_t j) { return view_.position(b, i) < view_.position(b, j); });
    return order;
  }

  void run_head(std::int64_t b, std::int64_t head) const {
    std::int64_t read_row = reads_(b);
    const bool padded = !pool_.has_row(read_row);
    const bool clears = !setting_.is(Fault::verify_padding_output_unwritten);
    for (std::int64_t i = 0; i < view_.seq(); ++i) {
      if (clears && (padded || !view_.is_real(b, i))) clear_output(tensors_, {b, i}, head);
    }
    if (padded) {
      if (!setting_.is(Fault::verify_padding_updates_row_zero)) return;
      read_row = 0;
    }
    HeadState root(tensors_.value_size(), tensors_.key_size(), setting_);
    root.load(pool_, read_row, head);
    std::vector<HeadState> states(static_cast<std::size_t>(view_.seq()), HeadState(tensors_.value_size(), tensors_.key_size(), setting_));
    std::int64_t last = -1;
    for (const std::int64_t i : order(b)) {
      if (setting_.is(Fault::root_read_after_stores)) root.load(pool_, read_row, head);
      const std::int64_t above = parent(b, i);
      HeadState& state = states[static_cast<std::size_t>(i)];
      state = above < 0 ? root : states[static_cast<std::size_t>(above)];
      if (above >= 0 && setting_.is(Fault::child_of_rounded_state)) state.round_to(pool_.dtype());
      const std::vector<float> output = state.step(read_token(tensors_, {b, i}, head, setting_), tensors_.scale);
      if (!padded) write_output(tensors_, {b, i}, head, output, setting_);
      state.store(pool_, padded ? read_row : slots_(b, i), head);
      last = i;
    }
    if (setting_.is(Fault::last_draft_kept) && last >= 0) states[static_cast<std::size_t>(last)].store(pool_, read_row, head);
  }

  Setting setting_;
  RuleTensors tensors_;
  IndexView view_;
  Rows pool_;
  IntegerView reads_, slots_;
};

}  // namespace

void gdn_verify(const quire_gdn_verify_args& args, const Setting& setting) { Verify(args, setting).run(); }

}  // namespace quire::conformance::honest
