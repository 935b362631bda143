// Prefill of the gated delta rule on pools of states (laws E4-E9).
#include "../rule.h"

namespace quire::gpu {

namespace {

// A sequence's tokens, and the rows it reads and writes.
struct Sequence {
  std::int64_t first = 0, length = 0, prefix = 0;
  std::int64_t first_checkpoint = 0;  // its ordinal
  std::int64_t read_row = -1, write_row = -1;
  bool stores_checkpoints = false;
};

// E9: a bad number on a device: the sequence reads zero and stores nothing. A final state that is the call's own is zero then.
QUIRE_DEVICE Sequence bad(const PrefillParameters& parameters, std::int64_t i, std::int64_t first, std::int64_t length) {
  Sequence sequence;
  sequence.first = first;
  sequence.length = length;
  if (parameters.output_state_is_fresh != 0) sequence.write_row = i;
  return sequence;
}

QUIRE_DEVICE std::int64_t entry(const TensorView& list, std::int64_t i) { return integer_at(list, offset(list, i)); }

QUIRE_DEVICE Sequence sequence_of(const PrefillParameters& parameters, std::int64_t i) {
  Sequence sequence;
  // E4
  sequence.first = entry(parameters.cu_seqlens, i);
  const std::int64_t end = entry(parameters.cu_seqlens, i + 1);
  if (sequence.first < 0 || end < sequence.first || end > parameters.rule.q.sizes[0]) return bad(parameters, i, 0, 0);
  sequence.length = end - sequence.first;
  // E6; a fresh final state has a row per sequence (E4).
  sequence.read_row = is_present(parameters.state_indices) ? entry(parameters.state_indices, i) : i;
  sequence.write_row = sequence.read_row;
  if (is_present(parameters.output_state_indices)) sequence.write_row = entry(parameters.output_state_indices, i);
  if (parameters.output_state_is_fresh != 0) sequence.write_row = i;
  // E7: the places of its checkpoints lie inside the list of rows, or without one inside the pool.
  const std::int64_t every = parameters.checkpoint_every;
  if (every == 0) return sequence;
  sequence.stores_checkpoints = true;
  if (is_present(parameters.prefix_lens)) sequence.prefix = entry(parameters.prefix_lens, i);
  if (sequence.prefix < 0 || sequence.prefix > INT64_MAX - sequence.length) return bad(parameters, i, sequence.first, sequence.length);
  const std::int64_t count = (sequence.prefix + sequence.length) / every - sequence.prefix / every;
  const std::int64_t places = is_present(parameters.checkpoint_state_indices) ? parameters.checkpoint_state_indices.sizes[0]
                                                                              : parameters.state_checkpoints.sizes[0];
  sequence.first_checkpoint = entry(parameters.checkpoint_cu_starts, i);
  const bool is_outside = sequence.first_checkpoint < 0 || sequence.first_checkpoint > places - count;
  if (count > 0 && is_outside) return bad(parameters, i, sequence.first, sequence.length);
  return sequence;
}

// E7: the row of the checkpoint at absolute position `total`, a multiple of the interval.
QUIRE_DEVICE std::int64_t checkpoint_row(const PrefillParameters& parameters, const Sequence& sequence, std::int64_t total) {
  const std::int64_t ordinal =
      sequence.first_checkpoint + total / parameters.checkpoint_every - sequence.prefix / parameters.checkpoint_every - 1;
  return is_present(parameters.checkpoint_state_indices) ? entry(parameters.checkpoint_state_indices, ordinal) : ordinal;
}

}  // namespace

QUIRE_KERNEL(gdn_prefill, PrefillParameters) {
  const RuleView& rule = parameters.rule;
  const std::int64_t keys = keys_of(rule);
  for_rows(rule, parameters.sequences, [&](std::int64_t i, std::int64_t head, std::int64_t v) {
    const Sequence sequence = sequence_of(parameters, i);
    if (sequence.length == 0 && parameters.output_state_is_fresh == 0) return;  // E4: writes nothing
    RowPart state = load_state(parameters.initial_state, sequence.read_row, head, v, keys);
    for (std::int64_t x = 1; x <= sequence.length; ++x) {
      step(rule, {sequence.first + x - 1, 0}, head, v, state);
      const std::int64_t total = sequence.prefix + x;
      if (sequence.stores_checkpoints && total % parameters.checkpoint_every == 0) {
        store_state(state, parameters.state_checkpoints, checkpoint_row(parameters, sequence, total), head, v, keys);
      }
    }
    store_state(state, parameters.output_state, sequence.write_row, head, v, keys);
  });
}

}  // namespace quire::gpu
