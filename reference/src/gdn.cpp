// Prefill and decode of the gated delta rule on pools of states (laws E4-E9).
#include "gdn_calls.h"
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
      : operands_(operands_of(args)),
        rows_(args),
        initial_state_(args.initial_state),
        output_state_(args.output_state),
        state_checkpoints_(args.state_checkpoints) {}

  void run() {
    for_sequences_and_heads(rows_.count(), operands_.heads(), rule_work(operands_, operands_.q.size(0)), rows_are_shared(),
                            [this](std::int64_t i, std::int64_t head) { run_head(i, head); });
  }

 private:
  bool rows_are_shared() const {
    RowUse rows;
    for (std::int64_t i = 0; i < rows_.count(); ++i) {
      if (rows_.length(i) == 0) continue;
      rows.read(i, initial_state_, rows_.read_row(i));
      rows.write(i, output_state_, rows_.write_row(i));
      const std::int64_t every = rows_.every();
      if (every == 0) continue;
      const std::int64_t total = rows_.prefix(i) + rows_.length(i);
      // E7's count; the multiple behind the last may lie past 2^63.
      for (std::int64_t j = rows_.prefix(i) / every + 1; j <= total / every; ++j) {
        rows.write(i, state_checkpoints_, rows_.checkpoint_row(i, j * every));
      }
    }
    return rows.is_shared();
  }

  void run_head(std::int64_t i, std::int64_t head) const {
    if (rows_.is_idle(i)) return;
    HeadState state(operands_.value_size(), operands_.key_size());
    state.load(initial_state_, rows_.read_row(i), head);
    HeadInputs inputs(operands_, head);
    const Kernels& chosen = kernels();
    for (std::int64_t x = 1; x <= rows_.length(i); ++x) {
      const TokenPlace token{rows_.first_token(i) + x - 1, 0};
      inputs.load(token);
      state.step(inputs, operands_.scale, chosen);
      inputs.store_output(token);
      const std::int64_t total = rows_.prefix(i) + x;
      if (rows_.every() != 0 && total % rows_.every() == 0) state.store(state_checkpoints_, rows_.checkpoint_row(i, total), head);
    }
    state.store(output_state_, rows_.write_row(i), head);
  }

  GdnOperands operands_;
  PrefillRows rows_;
  RowView initial_state_, output_state_, state_checkpoints_;
};

}  // namespace

void gdn_prefill(const quire_gdn_prefill_args& args) { Prefill(args).run(); }

void gdn_decode(const quire_gdn_decode_args& args) {
  const GdnOperands operands = operands_of(args);
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
