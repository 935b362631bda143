// Tolerances of prefill, decode and verify: whose errors go on from whose, and which rows they reach (laws E4-E7, F2).
#include "error_model.h"

#include "error_model_rule.h"
#include "gdn_calls.h"
#include "parallel.h"

#include <memory>

namespace quire::reference {

namespace {

Bounds bounds_of(std::int64_t elements) { return {zeros(elements), zeros(elements)}; }

std::int64_t state_size(const GdnOperands& operands) { return operands.heads() * operands.value_size() * operands.key_size(); }

// Rows are made before the heads run side by side. A row outside the pool has none: its store is dropped.
class Rows {
 public:
  Rows(std::map<std::int64_t, Bounds>& rows, const RowView& pool, std::int64_t size) : rows_(rows), pool_(pool), size_(size) {}
  void add(std::int64_t row) {
    if (row_in(pool_, row)) rows_.try_emplace(row, bounds_of(size_));
  }
  void put(std::int64_t row, const RuleErrors& errors) {
    if (row_in(pool_, row)) errors.put_state(rows_.find(row)->second);
  }

 private:
  std::map<std::int64_t, Bounds>& rows_;
  RowView pool_;
  std::int64_t size_;
};

double work_of(const GdnOperands& operands, std::int64_t tokens) {
  const double keys = static_cast<double>(operands.key_size()), values = static_cast<double>(operands.value_size());
  return static_cast<double>(tokens * operands.heads()) * keys * (4 * keys + 12 * values);
}

}  // namespace

GdnBounds gdn_prefill_bounds(const quire_gdn_prefill_args& args, const quire_contract& contract) {
  const GdnOperands operands = operands_of(args);
  const PrefillRows rows(args);
  const RowView initial(args.initial_state);
  GdnBounds bounds{bounds_of(operands.q.size(0) * operands.heads() * operands.value_size()), {}, {}};
  Rows finals(bounds.output_state, RowView(args.output_state), state_size(operands));
  Rows checkpoints(bounds.state_checkpoints, RowView(args.state_checkpoints), state_size(operands));
  const auto checkpoint_at = [&](std::int64_t i, std::int64_t x) { return rows.every() != 0 && (rows.prefix(i) + x) % rows.every() == 0; };
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    if (rows.is_idle(i)) continue;
    finals.add(rows.write_row(i));
    for (std::int64_t x = 1; x <= rows.length(i); ++x) {
      if (checkpoint_at(i, x)) checkpoints.add(rows.checkpoint_row(i, rows.prefix(i) + x));
    }
  }
  parallel_for(operands.heads(), work_of(operands, operands.q.size(0)), [&](std::int64_t head) {
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      if (rows.is_idle(i)) continue;
      RuleErrors errors(operands, head, contract);
      errors.load(initial, rows.read_row(i));
      for (std::int64_t x = 1; x <= rows.length(i); ++x) {
        const std::int64_t token = rows.first_token(i) + x - 1;
        errors.step({token, 0});
        errors.put_output(bounds.output, token);
        if (checkpoint_at(i, x)) checkpoints.put(rows.checkpoint_row(i, rows.prefix(i) + x), errors);
      }
      finals.put(rows.write_row(i), errors);
    }
  });
  return bounds;
}

GdnBounds gdn_decode_bounds(const quire_gdn_decode_args& args, const quire_contract& contract) {
  const GdnOperands operands = operands_of(args);
  const RowView pool(args.state_pool);
  const IntegerView read(args.state_indices), write(args.output_state_indices);
  const auto write_row = [&](std::int64_t b) { return write.defined() ? write(b) : read(b); };
  const std::int64_t batch = operands.q.size(0);
  GdnBounds bounds{bounds_of(batch * operands.heads() * operands.value_size()), {}, {}};
  Rows rows(bounds.output_state, pool, state_size(operands));
  for (std::int64_t b = 0; b < batch; ++b) {
    if (row_in(pool, read(b))) rows.add(write_row(b));
  }
  parallel_for(operands.heads(), work_of(operands, batch), [&](std::int64_t head) {
    for (std::int64_t b = 0; b < batch; ++b) {
      if (!row_in(pool, read(b))) continue;  // E6: a padded sequence
      RuleErrors errors(operands, head, contract);
      errors.load(pool, read(b));
      errors.step({b, 0});
      errors.put_output(bounds.output, b);
      rows.put(write_row(b), errors);
    }
  });
  return bounds;
}

GdnBounds gdn_verify_bounds(const quire_gdn_verify_args& args, const quire_contract& contract) {
  const GdnOperands operands = operands_of(args);
  const IndexView view(*args.index);
  const RowView pool(args.state_pool);
  const IntegerView read(args.state_indices), slots(args.state_slots);
  GdnBounds bounds{bounds_of(view.batch() * view.seq() * operands.heads() * operands.value_size()), {}, {}};
  Rows rows(bounds.output_state, pool, state_size(operands));
  std::vector<DraftTree> trees;
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    trees.push_back(row_in(pool, read(b)) ? draft_tree(view, b) : DraftTree{});  // E6: a padded lane has no tokens
    for (const std::int64_t i : trees.back().order) rows.add(slots(b, i));
  }
  parallel_for(operands.heads(), work_of(operands, view.batch() * view.seq()), [&](std::int64_t head) {
    for (std::int64_t b = 0; b < view.batch(); ++b) {
      const DraftTree& tree = trees[static_cast<std::size_t>(b)];
      RuleErrors root(operands, head, contract);
      root.load(pool, read(b));
      std::vector<std::unique_ptr<RuleErrors>> states(static_cast<std::size_t>(view.seq()));
      for (const std::int64_t i : tree.order) {
        const std::int64_t parent = tree.parents[static_cast<std::size_t>(i)];
        auto& state = states[static_cast<std::size_t>(i)];
        state = std::make_unique<RuleErrors>(parent < 0 ? root : *states[static_cast<std::size_t>(parent)]);
        state->step({b, i});
        state->put_output(bounds.output, b * view.seq() + i);
        rows.put(slots(b, i), *state);
      }
    }
  });
  return bounds;
}

}  // namespace quire::reference
