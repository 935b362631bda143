// Prefill and decode of the gated delta rule on pools of states (laws E4-E9).
#include "gdn_rule.h"
#include "ops.h"
#include "parallel.h"

#include <optional>
#include <unordered_map>

namespace quire::reference {

namespace {

double rule_work(const GdnOperands& operands, std::int64_t tokens) {
  return static_cast<double>(tokens * operands.heads()) * static_cast<double>(operands.key_size() * operands.value_size()) * 4;
}

// Rows of pools that a call's sequences read and write. E8 says that what one writes no other reads or writes; where a caller breaks
// that, the sequences run one after another, so that the result is at least always the same.
class RowUse {
 public:
  void read(std::int64_t sequence, const RowView& pool, std::int64_t row) {
    if (row_in(pool, row)) use(sequence, pool.at(row), false);
  }
  void write(std::int64_t sequence, const RowView& pool, std::int64_t row) {
    if (row_in(pool, row)) use(sequence, pool.at(row), true);
  }
  bool is_shared() const { return shared_; }

 private:
  struct Use {
    std::int64_t sequence;
    bool written;
    bool several;
  };
  void use(std::int64_t sequence, const std::byte* row, bool write) {
    const auto [found, is_new] = uses_.try_emplace(row, Use{sequence, write, false});
    if (is_new) return;
    Use& known = found->second;
    known.several |= known.sequence != sequence;
    known.written |= write;
    shared_ |= known.several && known.written;
  }
  std::unordered_map<const std::byte*, Use> uses_;
  bool shared_ = false;
};

// Calls body(sequence, head): all at once, or sequence by sequence.
template <typename Body>
void for_sequences_and_heads(std::int64_t n, std::int64_t heads, double work, bool in_order, const Body& body) {
  if (!in_order) {
    parallel_for(n * heads, work, [&](std::int64_t task) { body(task / heads, task % heads); });
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    parallel_for(heads, work / static_cast<double>(n), [&](std::int64_t head) { body(i, head); });
  }
}

class Prefill {
 public:
  explicit Prefill(const quire_gdn_prefill_args& args)
      : cu_seqlens_(args.cu_seqlens),
        state_indices_(args.state_indices),
        output_state_indices_(args.output_state_indices),
        checkpoint_cu_starts_(args.checkpoint_cu_starts),
        checkpoint_state_indices_(args.checkpoint_state_indices),
        prefix_lens_(args.prefix_lens),
        initial_state_(args.initial_state),
        output_state_(args.output_state),
        state_checkpoints_(args.state_checkpoints),
        every_(args.checkpoint_every_n_tokens),
        output_is_fresh_(args.output_state_is_fresh != 0) {
    operands_.q = RowView(args.q);
    operands_.k = RowView(args.k);
    operands_.v = RowView(args.v);
    operands_.g = RowView(args.g);
    operands_.beta = RowView(args.beta);
    operands_.output = RowView(args.output);
    operands_.scale = args.scale;
    operands_.use_qk_l2norm = args.use_qk_l2norm != 0;
  }

  void run() {
    const std::int64_t n = cu_seqlens_.size(0) - 1;
    for_sequences_and_heads(n, operands_.heads(), rule_work(operands_, operands_.q.size(0)), rows_are_shared(n),
                            [this](std::int64_t i, std::int64_t head) { run_head(i, head); });
  }

 private:
  std::int64_t length(std::int64_t i) const { return cu_seqlens_(i + 1) - cu_seqlens_(i); }

  // E6: the row a sequence reads, and the row its final state goes to.
  std::int64_t read_row(std::int64_t i) const { return state_indices_.defined() ? state_indices_(i) : i; }
  std::int64_t write_row(std::int64_t i) const {
    if (output_is_fresh_) return i;  // E4: the call's own tensor holds one state per sequence
    return output_state_indices_.defined() ? output_state_indices_(i) : read_row(i);
  }

  // E7: the row of the checkpoint taken at absolute position `total`, a multiple of the interval.
  std::int64_t checkpoint_row(std::int64_t i, std::int64_t prefix, std::int64_t total) const {
    const std::int64_t ordinal = checkpoint_cu_starts_(i) + total / every_ - prefix / every_ - 1;
    return checkpoint_state_indices_.defined() ? checkpoint_state_indices_(ordinal) : ordinal;
  }
  std::int64_t prefix(std::int64_t i) const { return prefix_lens_.defined() ? prefix_lens_(i) : 0; }

  bool rows_are_shared(std::int64_t n) const {
    RowUse rows;
    for (std::int64_t i = 0; i < n; ++i) {
      if (length(i) == 0) continue;
      rows.read(i, initial_state_, read_row(i));
      rows.write(i, output_state_, write_row(i));
      if (every_ == 0) continue;
      const std::int64_t total = prefix(i) + length(i);
      for (std::int64_t at = (prefix(i) / every_ + 1) * every_; at <= total; at += every_) {
        rows.write(i, state_checkpoints_, checkpoint_row(i, prefix(i), at));
      }
    }
    return rows.is_shared();
  }

  void run_head(std::int64_t i, std::int64_t head) const {
    if (length(i) == 0 && !output_is_fresh_) return;  // E4: a zero-length sequence writes nothing
    HeadState state(operands_.value_size(), operands_.key_size());
    state.load(initial_state_, read_row(i), head);
    HeadInputs inputs(operands_, head);
    const Kernels& chosen = kernels();
    for (std::int64_t x = 1; x <= length(i); ++x) {
      const TokenPlace token{cu_seqlens_(i) + x - 1, 0};
      inputs.load(token);
      state.step(inputs, operands_.scale, chosen);
      inputs.store_output(token);
      const std::int64_t total = prefix(i) + x;
      if (every_ != 0 && total % every_ == 0) state.store(state_checkpoints_, checkpoint_row(i, prefix(i), total), head);
    }
    state.store(output_state_, write_row(i), head);
  }

  GdnOperands operands_;
  IntegerView cu_seqlens_, state_indices_, output_state_indices_, checkpoint_cu_starts_, checkpoint_state_indices_, prefix_lens_;
  RowView initial_state_, output_state_, state_checkpoints_;
  std::int64_t every_;
  bool output_is_fresh_;
};

}  // namespace

void gdn_prefill(const quire_gdn_prefill_args& args) { Prefill(args).run(); }

void gdn_decode(const quire_gdn_decode_args& args) {
  GdnOperands operands;
  operands.q = RowView(args.q);
  operands.k = RowView(args.k);
  operands.v = RowView(args.v);
  operands.g = RowView(args.g);
  operands.beta = RowView(args.beta);
  operands.A_log = RowView(args.A_log);
  operands.a = RowView(args.a);
  operands.dt_bias = RowView(args.dt_bias);
  operands.b = RowView(args.b);
  operands.output = RowView(args.output);
  operands.scale = args.scale;
  operands.use_qk_l2norm = args.use_qk_l2norm != 0;
  operands.lead = 2;
  const RowView pool(args.state_pool);
  const IntegerView read(args.state_indices);
  const IntegerView write(args.output_state_indices);
  const auto write_row = [&](std::int64_t b) { return write.defined() ? write(b) : read(b); };
  const std::int64_t batch = operands.q.size(0);
  RowUse rows;
  for (std::int64_t b = 0; b < batch; ++b) {
    if (!row_in(pool, read(b))) continue;
    rows.read(b, pool, read(b));
    rows.write(b, pool, write_row(b));
  }
  for_sequences_and_heads(batch, operands.heads(), rule_work(operands, batch), rows.is_shared(), [&](std::int64_t b, std::int64_t head) {
    const TokenPlace token{b, 0};
    if (!row_in(pool, read(b))) {  // E6: a padded sequence
      operands.output.clear_row(3, operands.output.at(b, 0, head));
      return;
    }
    HeadState state(operands.value_size(), operands.key_size());
    state.load(pool, read(b), head);
    HeadInputs inputs(operands, head);
    inputs.load(token);
    state.step(inputs, operands.scale, kernels());
    inputs.store_output(token);
    state.store(pool, write_row(b), head);
  });
}

}  // namespace quire::reference
