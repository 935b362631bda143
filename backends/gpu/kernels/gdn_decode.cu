// Decode of the gated delta rule: one token of each sequence on a pool of states (laws E3, E6).
#include "../rule.h"

namespace quire::gpu {

QUIRE_KERNEL(gdn_decode, DecodeParameters) {
  const RuleView& rule = parameters.rule;
  const TensorView& pool = parameters.state_pool;
  const TensorView& writes = is_present(parameters.output_state_indices) ? parameters.output_state_indices : parameters.state_indices;
  for_rows(rule, rule.q.sizes[0], [&](std::int64_t b, std::int64_t head, std::int64_t v) {
    const std::int64_t read_row = integer_at(parameters.state_indices, offset(parameters.state_indices, b));
    if (!has_row(pool, read_row)) return put_output(rule, {b, 0}, head, v, 0.0f);  // E6: a padded sequence
    RowPart state = load_state(pool, read_row, head, v, keys_of(rule));
    step(rule, {b, 0}, head, v, state);
    store_state(state, pool, integer_at(writes, offset(writes, b)), head, v, keys_of(rule));
  });
}

}  // namespace quire::gpu
