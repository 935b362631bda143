// Prefill and decode of the gated delta rule in the honest backend (laws E4-E9).
#include <quire/index_view.h>

#include "ops.h"
#include "rule.h"

#include <algorithm>

namespace quire::conformance::honest {

namespace {

class Prefill {
 public:
  Prefill(const quire_gdn_prefill_args& args, const Setting& setting)
      : setting_(setting),
        tensors_(rule_tensors(args, 1, setting)),
        cu_seqlens_(args.cu_seqlens),
        state_indices_(args.state_indices),
        output_state_indices_(args.output_state_indices),
        checkpoint_cu_starts_(args.checkpoint_cu_starts),
        checkpoint_state_indices_(args.checkpoint_state_indices),
        prefix_lens_(args.prefix_lens),
        initial_state_(args.initial_state, setting),
        output_state_(args.output_state, setting),
        state_checkpoints_(args.state_checkpoints, setting),
        every_(args.checkpoint_every_n_tokens),
        output_is_fresh_(args.output_state_is_fresh != 0) {}

  void run() {
    const std::int64_t n = cu_seqlens_.size(0) - 1;
    for (std::int64_t head = 0; head < tensors_.heads(); ++head) {
      HeadState state(tensors_.value_size(), tensors_.key_size(), setting_);
      for (std::int64_t i = 0; i < n; ++i) run_sequence(i, head, state);
    }
  }

 private:
  std::int64_t length(std::int64_t i) const { return cu_seqlens_(i + 1) - cu_seqlens_(i); }
  std::int64_t prefix(std::int64_t i) const {
    return prefix_lens_.defined() && !setting_.is(Fault::checkpoints_from_first_new_token) ? prefix_lens_(i) : 0;
  }

  // Where per-sequence numbers stand; the fault that swallows sequences of no tokens shifts them.
  std::int64_t entry(std::int64_t i) const {
    if (!setting_.is(Fault::zero_length_swallowed)) return i;
    std::int64_t entry = 0;
    for (std::int64_t before = 0; before < i; ++before) entry += length(before) > 0 ? 1 : 0;
    return entry;
  }
  // E6
  std::int64_t read_row(std::int64_t i) const { return state_indices_.defined() ? state_indices_(entry(i)) : i; }
  std::int64_t write_row(std::int64_t i) const {
    if (output_is_fresh_) return i;
    if (!output_state_indices_.defined()) return read_row(i);
    const std::int64_t row = output_state_indices_(entry(i));
    return row < 0 && setting_.is(Fault::skipped_store_at_read_row) ? read_row(i) : row;
  }

  // E7: the row of a sequence's n-th checkpoint of the call.
  std::int64_t checkpoint_row(std::int64_t i, std::int64_t ordinal) const {
    std::int64_t start = checkpoint_cu_starts_(i);
    if (setting_.is(Fault::checkpoint_starts_running_sum)) {
      start = 0;
      for (std::int64_t before = 0; before < i; ++before) start += (prefix(before) + length(before)) / every_ - prefix(before) / every_;
    }
    const std::int64_t place = start + ordinal;
    if (!checkpoint_state_indices_.defined()) return place;
    return place >= 0 && place < checkpoint_state_indices_.size(0) ? checkpoint_state_indices_(place) : -1;
  }

  void load(std::int64_t i, std::int64_t head, HeadState& state) const {
    if (setting_.is(Fault::state_carried_over) && i > 0) return;
    std::int64_t row = read_row(i);
    const bool fresh = !initial_state_.has_row(row);
    if (fresh && setting_.is(Fault::fresh_token_reads_old_state) && length(i) == 1) row = write_row(i);
    state.load(initial_state_, row, head);
  }

  // Tokens of a chunk that begins at new token x: up to the chunk's end, the next checkpoint, or a decay that has no log.
  std::vector<TokenInputs> read_chunk(std::int64_t i, std::int64_t head, std::int64_t x) const {
    const HonestOptions& options = setting_.options;
    std::int64_t end = x + 1;
    if (options.recurrence == HonestOptions::Recurrence::chunked) end = (x / options.chunk_length + 1) * options.chunk_length;
    end = std::min(end, length(i));
    if (every_ > 0) end = std::min(end, ((prefix(i) + x) / every_ + 1) * every_ - prefix(i));
    const bool cuts = options.decay_from_log_sums && !setting_.is(Fault::decays_from_log_sums);
    std::vector<TokenInputs> tokens;
    for (std::int64_t y = x; y < end; ++y) {
      TokenInputs token = read_token(tensors_, {cu_seqlens_(i) + y, 0}, head, setting_);
      if (cuts && y > x && !has_log(token.decay)) break;
      tokens.push_back(std::move(token));
    }
    return tokens;
  }
  static bool has_log(float decay) { return decay > 0 && std::isfinite(decay); }

  void advance(std::int64_t i, std::int64_t head, std::int64_t x, std::vector<TokenInputs>& tokens, HeadState& state) const {
    std::vector<std::vector<float>> outputs;
    if (setting_.options.recurrence == HonestOptions::Recurrence::token) {
      outputs.push_back(state.step(tokens[0], tensors_.scale));
    } else {
      if (setting_.options.decay_from_log_sums && !setting_.is(Fault::decays_from_log_sums) && !has_log(tokens[0].decay)) {
        state.multiply(tokens[0].decay);
        tokens[0].decay = 1;
      }
      outputs = state.chunk(tokens, tensors_.scale);
    }
    for (std::size_t y = 0; y < outputs.size(); ++y) {
      write_output(tensors_, {cu_seqlens_(i) + x + static_cast<std::int64_t>(y), 0}, head, outputs[y], setting_);
    }
  }

  // What goes wrong with a state between two tokens; `done` new tokens are in it.
  void spoil(std::int64_t done, HeadState& state) const {
    if (setting_.is(Fault::state_rounded_every_token)) {
      if (output_state_.defined())
        state.round_to(output_state_.dtype());
      else if (initial_state_.defined())
        state.round_to(initial_state_.dtype());
    }
    if (setting_.is(Fault::state_rounded_to_bf16_every_64) && done % 64 == 0) state.round_to(DType::bf16);
    if (setting_.is(Fault::chunk_carry_lost) && done % 64 == 0) state.multiply(0.0F);
  }

  void run_sequence(std::int64_t i, std::int64_t head, HeadState& state) const {
    if (length(i) == 0) return empty_sequence(i, head, state);
    load(i, head, state);
    HeadState whole_chunks = state, before = state;
    std::int64_t checkpoints = 0;
    const std::int64_t count = every_ > 0 ? (prefix(i) + length(i)) / every_ - prefix(i) / every_ : 0;
    const auto checkpoint = [&](const HeadState& what) { what.store(state_checkpoints_, checkpoint_row(i, checkpoints++), head); };
    for (std::int64_t x = 0; x < length(i);) {
      before = state;
      std::vector<TokenInputs> tokens = read_chunk(i, head, x);
      advance(i, head, x, tokens, state);
      x += static_cast<std::int64_t>(tokens.size());
      const std::int64_t total = prefix(i) + x;
      const bool is_end = x == length(i);
      if (every_ > 0) {
        switch (setting_.fault) {
          case Fault::checkpoint_one_early:
            if (total % every_ == 0) checkpoint(before);
            break;
          case Fault::checkpoint_one_late:
            if ((total % every_ == 1 && checkpoints < count && x > 1) || (is_end && checkpoints < count)) checkpoint(state);
            break;
          case Fault::checkpoint_is_final_state:
            while (is_end && checkpoints < count) checkpoint(state);
            break;
          case Fault::checkpoint_at_chunk_end:
            while ((x % 64 == 0 || is_end) && checkpoints < total / every_ - prefix(i) / every_) checkpoint(state);
            break;
          case Fault::checkpoint_at_end_missing:
            if (total % every_ == 0 && !is_end) checkpoint(state);
            break;
          default:
            if (total % every_ == 0) checkpoint(state);  // E7
        }
      }
      if (!is_end) spoil(x, state);
      if (x % 64 == 0) whole_chunks = state;
    }
    const HeadState& last = setting_.is(Fault::final_state_of_last_full_chunk) ? whole_chunks : state;
    last.store(output_state_, write_row(i), head);
    if (setting_.is(Fault::read_row_written_too)) last.store(output_state_, read_row(i), head);
  }

  // E4
  void empty_sequence(std::int64_t i, std::int64_t head, HeadState& state) const {
    if (setting_.is(Fault::zero_length_swallowed)) return;
    if (setting_.is(Fault::zero_length_touched)) {
      state.load(Rows(), -1, head);
      return state.store(output_state_, write_row(i), head);
    }
    if (!output_is_fresh_ || setting_.is(Fault::zero_length_fresh_unwritten)) return;
    load(i, head, state);
    state.store(output_state_, i, head);
  }

  Setting setting_;
  RuleTensors tensors_;
  IntegerView cu_seqlens_, state_indices_, output_state_indices_, checkpoint_cu_starts_, checkpoint_state_indices_, prefix_lens_;
  Rows initial_state_, output_state_, state_checkpoints_;
  std::int64_t every_;
  bool output_is_fresh_;
};

}  // namespace

void gdn_prefill(const quire_gdn_prefill_args& args, const Setting& setting) { Prefill(args, setting).run(); }

void gdn_decode(const quire_gdn_decode_args& args, const Setting& setting) {
  RuleTensors tensors = rule_tensors(args, 2, setting);
  tensors.A_log = Rows(args.A_log, setting);
  tensors.a = Rows(args.a, setting);
  tensors.dt_bias = Rows(args.dt_bias, setting);
  tensors.b = Rows(args.b, setting);
  const Rows pool(args.state_pool, setting);
  const IntegerView reads(args.state_indices), writes(args.output_state_indices);
  for (std::int64_t b = 0; b < tensors.q.size(0); ++b) {
    std::int64_t read_row = reads(b);
    std::int64_t write_row = writes.defined() ? writes(b) : read_row;
    if (write_row < 0 && setting.is(Fault::skipped_store_at_read_row)) write_row = read_row;
    const bool padded = !pool.has_row(read_row);
    if (padded && setting.is(Fault::decode_padding_updates_row_zero)) {
      read_row = 0;
      write_row = 0;
    }
    for (std::int64_t head = 0; head < tensors.heads(); ++head) {
      if (!pool.has_row(read_row)) {  // E6: a padded sequence
        if (!setting.is(Fault::decode_padding_output_unwritten)) clear_output(tensors, {b, 0}, head);
        continue;
      }
      HeadState state(tensors.value_size(), tensors.key_size(), setting);
      state.load(pool, read_row, head);
      const std::vector<float> output = state.step(read_token(tensors, {b, 0}, head, setting), tensors.scale);
      if (padded)
        clear_output(tensors, {b, 0}, head);
      else
        write_output(tensors, {b, 0}, head, output, setting);
      state.store(pool, write_row, head);
      if (setting.is(Fault::read_row_written_too)) state.store(pool, read_row, head);
    }
  }
}

}  // namespace quire::conformance::honest
