// The gated delta rule under a draft: every token goes on from its parent's unrounded state (law F2).
#include "../index.h"
#include "../rule.h"

namespace quire::gpu {

// The tree of each lane, a thread per token. Positions grow from parent to child, so their order is one in which parents come first.
QUIRE_KERNEL(draft_tree, TreeParameters) {
  const IndexView& index = parameters.index;
  const std::int64_t seq = seq_of(index);
  for (std::int64_t n = block() * threads() + thread(); n < batch_of(index) * seq; n += blocks() * threads()) {
    const std::int64_t b = n / seq, i = n % seq;
    const std::int64_t t = position(index, b, i);
    std::int64_t parent = -1, parent_position = -1, before = 0;
    for (std::int64_t j = 0; j < seq; ++j) {
      const std::int64_t p = position(index, b, j);
      // Those in front: real tokens of a smaller position, or of the same and an earlier place; padding comes last.
      const bool is_before = t < 0 ? p >= 0 || j < i : p >= 0 && (p < t || (p == t && j < i));
      before += is_before ? 1 : 0;
      // The parent: of the real tokens seen at a smaller position the one of the greatest.
      if (p < 0 || p >= t || !flag_at(index.sees, offset(index.sees, b, i, j)) || p <= parent_position) continue;
      parent = j;
      parent_position = p;
    }
    parameters.order[b * seq + before] = t < 0 ? -1 : i;
    parameters.parents[n] = parent;
  }
}

QUIRE_KERNEL(gdn_verify, VerifyParameters) {
  const RuleView& rule = parameters.rule;
  const TensorView& pool = parameters.state_pool;
  const std::int64_t seq = rule.q.sizes[1], heads = heads_of(rule), values = values_of(rule), keys = keys_of(rule);
  for_rows(rule, rule.q.sizes[0], [&](std::int64_t b, std::int64_t head, std::int64_t v) {
    const std::int64_t* order = parameters.order + b * seq;
    const std::int64_t read_row = integer_at(parameters.state_indices, offset(parameters.state_indices, b));
    // E6: outputs of padded tokens, of all in a padded sequence, are zero. Tokens that `order` names overwrite theirs.
    for (std::int64_t i = 0; i < seq; ++i) put_output(rule, {b, i}, head, v, 0.0f);
    if (!has_row(pool, read_row)) return;
    const RowPart root = load_state(pool, read_row, head, v, keys);  // read before anything is stored
    // A thread reads the elements of unrounded states that it has itself written.
    const auto unrounded = [&](std::int64_t i) { return parameters.states + (((b * seq + i) * heads + head) * values + v) * keys; };
    for (std::int64_t n = 0; n < seq && order[n] >= 0; ++n) {
      const std::int64_t i = order[n], parent = parameters.parents[b * seq + i];
      RowPart state = root;
      if (parent >= 0) for_part(keys, [&](int part, std::int64_t element) { state.at[part] = unrounded(parent)[element]; });
      step(rule, {b, i}, head, v, state);
      for_part(keys, [&](int part, std::int64_t element) { unrounded(i)[element] = state.at[part]; });
      store_state(state, pool, integer_at(parameters.state_slots, offset(parameters.state_slots, b, i)), head, v, keys);
    }
  });
}

}  // namespace quire::gpu
