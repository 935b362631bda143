// Planning: parameters, blocks and workspace of every op.
#include "plan.h"

#include <fmt/format.h>

#include <limits>

#include "kernels.h"
#include "views.h"

namespace quire::gpu {

namespace {

constexpr std::int64_t warps_per_block = block_threads / 32;  // on the narrowest warps; wider ones go round once more

/// A count that may not fit: the product of sizes, all from one call.
class Count {
 public:
  explicit Count(std::int64_t value) : value_(value) {}
  Count times(std::int64_t factor) const {
    Count product(0);
    product.overflows_ = __builtin_mul_overflow(value_, factor, &product.value_) || overflows_;
    return product;
  }
  Count plus(const Count& other) const {
    Count sum(0);
    sum.overflows_ = __builtin_add_overflow(value_, other.value_, &sum.value_) || overflows_ || other.overflows_;
    return sum;
  }
  /// Blocks that take `each` of them at a time.
  std::int64_t over(std::int64_t each) const { return value_ / each + (value_ % each != 0 ? 1 : 0); }
  /// Kernels add a grid's step to a work's number without a check.
  bool fits() const { return !overflows_ && value_ <= std::numeric_limits<std::int64_t>::max() / 4; }
  std::int64_t value() const { return value_; }

 private:
  std::int64_t value_;
  bool overflows_ = false;
};

const quire_tensor& tensor_of(const Call& call, std::string_view name) { return *call.tensor(name); }

template <typename Args>
const Args& args_of(const Call& call) {
  return *static_cast<const Args*>(call.args());
}

Count elements_of(const quire_tensor& tensor, int axes) {
  Count count(1);
  for (int axis = 0; axis < axes; ++axis) count = count.times(tensor.shape[axis]);
  return count;
}

// ---- the work of each op ----

int seen_axes(const quire_index& index) { return index.columns != nullptr ? 3 : 2; }

Count attend_blocks(const quire_attend_args& args) {
  const std::int64_t value_size = args.v->shape[3];
  return elements_of(*args.q, 3).times(value_size / attend_values + (value_size % attend_values != 0 ? 1 : 0));
}

/// Rows v of states: sequences, or lanes, times H times V.
Count state_rows(std::int64_t sequences, const quire_tensor& output) {
  return Count(sequences).times(output.shape[output.rank - 2]).times(output.shape[output.rank - 1]);
}

// F2: order and parents, then the unrounded states.
Count verify_tree_bytes(const quire_gdn_verify_args& args) {
  return elements_of(*args.output, 2).times(2 * static_cast<std::int64_t>(sizeof(std::int64_t)));
}
Count verify_bytes(const quire_gdn_verify_args& args) {
  const Count states = elements_of(*args.output, 4).times(args.q->shape[3]).times(static_cast<std::int64_t>(sizeof(float)));
  return verify_tree_bytes(args).plus(states);
}

/// What an op's kernels go over, and what they need beside its tensors.
Count work_of(const Call& call) {
  switch (call.op()) {
    case QUIRE_OP_POSITIONS: return elements_of(tensor_of(call, "positions"), 2);
    case QUIRE_OP_MASK: return elements_of(tensor_of(call, "mask"), 3);
    case QUIRE_OP_ADVANCE: return elements_of(tensor_of(call, "index.pos"), 2);
    case QUIRE_OP_EXTEND: {
      const auto& args = args_of<quire_extend_args>(call);
      return elements_of(*args.seen, seen_axes(*args.index)).plus(elements_of(*args.values, args.values->rank));
    }
    case QUIRE_OP_ATTEND: return attend_blocks(args_of<quire_attend_args>(call));
    case QUIRE_OP_GDN_PREFILL: {
      const auto& args = args_of<quire_gdn_prefill_args>(call);
      return state_rows(args.cu_seqlens->shape[0] - 1, *args.output);
    }
    case QUIRE_OP_GDN_DECODE: return elements_of(tensor_of(call, "output"), 4);
    case QUIRE_OP_GDN_VERIFY: return verify_bytes(args_of<quire_gdn_verify_args>(call));
    default: return elements_of(tensor_of(call, "last_page_len"), 1);
  }
}

std::string unsupported_extend(const quire_extend_args& args) {
  std::string reason;
  const auto check = [&](const quire_tensor* from, int axis, const char* pair) {
    if (from == nullptr || !reason.empty() || row_shape(*from, axis, *args.seen, seen_axes(*args.index))) return;
    reason = fmt::format("{}: rows of more than {} axes that do not fold together", pair, RowShape::most_axes);
  };
  check(args.values, 2, "values to seen");
  check(args.pool, 1, "pool to seen");
  if (reason.empty() && args.pool != nullptr && !row_shape(*args.values, 2, *args.pool, 1)) {
    reason = fmt::format("values to pool: rows of more than {} axes that do not fold together", RowShape::most_axes);
  }
  return reason;
}

std::string unsupported_attend(const quire_attend_args& args, std::int64_t shared_bytes) {
  const std::int64_t size = args.q->shape[3];
  const std::int64_t most = (shared_bytes - shared_of_attend(0)) / static_cast<std::int64_t>(sizeof(float));
  return size > most ? fmt::format("q: heads of {} elements; up to {} fit in a block's shared memory", size, most) : std::string();
}

// ---- launches ----

template <typename Parameters>
void add(std::vector<Launch>& launches, const Kernel& kernel, std::int64_t blocks, const Parameters& parameters,
         std::int64_t shared_bytes = 0) {
  if (blocks > 0) launches.push_back(Launch::of(kernel, blocks, block_threads, shared_bytes, parameters));
}

template <typename Args>
TokensParameters tokens_parameters(const Args& args, const quire_tensor* out) {
  return {view_of(*args.index), view_of(out)};
}

// C3: nothing is kept on a whole index.
void add_store(std::vector<Launch>& launches, const quire_index& index, const quire_tensor& values, const quire_tensor* pool) {
  if (index.kind != QUIRE_INDEX_TABLED || pool == nullptr) return;
  const StoreParameters parameters{view_of(index), view_of(&values), view_of(pool), *row_shape(values, 2, *pool, 1)};
  if (parameters.row.units > 0) add(launches, store_rows(), elements_of(values, 2).value(), parameters);
}

void plan_extend(const quire_extend_args& args, std::vector<Launch>& launches) {
  add_store(launches, *args.index, *args.values, args.pool);
  const int axes = seen_axes(*args.index);
  GatherParameters parameters{view_of(*args.index),
                              view_of(args.values),
                              view_of(args.pool),
                              view_of(args.seen),
                              {},
                              *row_shape(*args.values, 2, *args.seen, axes)};
  if (args.pool != nullptr) parameters.row_of_pool = *row_shape(*args.pool, 1, *args.seen, axes);
  if (parameters.row_of_values.units > 0) add(launches, gather_rows(), elements_of(*args.seen, axes).value(), parameters);
}

void plan_attend(const quire_attend_args& args, std::vector<Launch>& launches) {
  add_store(launches, *args.index, *args.k, args.k_pool);
  add_store(launches, *args.index, *args.v, args.v_pool);
  AttendParameters parameters{view_of(*args.index),
                              view_of(args.q),
                              view_of(args.k),
                              view_of(args.v),
                              view_of(args.k_pool),
                              view_of(args.v_pool),
                              view_of(args.sinks),
                              view_of(args.out),
                              view_of(args.lse),
                              static_cast<float>(args.scale),
                              static_cast<float>(args.softcap)};
  add(launches, attend(), attend_blocks(args).value(), parameters, shared_of_attend(args.q->shape[3]));
}

template <typename Args>
RuleView rule_view(const Args& args) {
  RuleView rule;
  rule.q = view_of(args.q);
  rule.k = view_of(args.k);
  rule.v = view_of(args.v);
  rule.g = view_of(args.g);
  rule.beta = view_of(args.beta);
  rule.output = view_of(args.output);
  rule.scale = static_cast<float>(args.scale);
  rule.use_qk_l2norm = args.use_qk_l2norm;
  return rule;
}

void plan_prefill(const quire_gdn_prefill_args& args, std::vector<Launch>& launches) {
  PrefillParameters parameters;
  parameters.rule = rule_view(args);
  for (TensorView RuleView::*field : {&RuleView::q, &RuleView::k, &RuleView::v, &RuleView::g, &RuleView::beta, &RuleView::output}) {
    parameters.rule.*field = with_second_token(parameters.rule.*field);
  }
  parameters.cu_seqlens = view_of(args.cu_seqlens);
  parameters.initial_state = view_of(args.initial_state);
  parameters.state_indices = view_of(args.state_indices);
  parameters.output_state = view_of(args.output_state);
  parameters.output_state_indices = view_of(args.output_state_indices);
  parameters.state_checkpoints = view_of(args.state_checkpoints);
  parameters.checkpoint_cu_starts = view_of(args.checkpoint_cu_starts);
  parameters.checkpoint_state_indices = view_of(args.checkpoint_state_indices);
  parameters.prefix_lens = view_of(args.prefix_lens);
  parameters.sequences = args.cu_seqlens->shape[0] - 1;
  parameters.checkpoint_every = args.checkpoint_every_n_tokens;
  parameters.output_state_is_fresh = args.output_state_is_fresh;
  add(launches, gdn_prefill(), state_rows(parameters.sequences, *args.output).over(warps_per_block), parameters);
}

void plan_decode(const quire_gdn_decode_args& args, std::vector<Launch>& launches) {
  DecodeParameters parameters;
  parameters.rule = rule_view(args);
  parameters.rule.A_log = view_of(args.A_log);
  parameters.rule.a = view_of(args.a);
  parameters.rule.dt_bias = view_of(args.dt_bias);
  parameters.rule.b = view_of(args.b);
  parameters.state_pool = view_of(args.state_pool);
  parameters.state_indices = view_of(args.state_indices);
  parameters.output_state_indices = view_of(args.output_state_indices);
  add(launches, gdn_decode(), state_rows(args.output->shape[0], *args.output).over(warps_per_block), parameters);
}

void plan_verify(const quire_gdn_verify_args& args, void* workspace, std::vector<Launch>& launches) {
  const Count tokens = elements_of(*args.output, 2);
  auto* const order = static_cast<std::int64_t*>(workspace);
  std::int64_t* const parents = order + tokens.value();
  add(launches, draft_tree(), tokens.over(block_threads), TreeParameters{view_of(*args.index), order, parents});
  VerifyParameters parameters;
  parameters.rule = rule_view(args);
  parameters.state_pool = view_of(args.state_pool);
  parameters.state_indices = view_of(args.state_indices);
  parameters.state_slots = view_of(args.state_slots);
  parameters.order = order;
  parameters.parents = parents;
  parameters.states = reinterpret_cast<float*>(parents + tokens.value());
  add(launches, gdn_verify(), state_rows(args.output->shape[0], *args.output).over(warps_per_block), parameters);
}

void plan_slots(const quire_gdn_slots_args& args, const Kernel& kernel, std::vector<Launch>& launches) {
  const SlotsParameters parameters{view_of(args.cu_seqlens),    view_of(args.page_indices),         view_of(args.page_indptr),
                                   view_of(args.last_page_len), view_of(args.state_indices),        view_of(args.output_state_indices),
                                   view_of(args.prefix_lens),   view_of(args.checkpoint_cu_starts), args.page_size};
  add(launches, kernel, elements_of(*args.last_page_len, 1).over(block_threads), parameters);
}

}  // namespace

std::string unsupported_reason(const Call& call, std::int64_t shared_bytes) {
  if (!work_of(call).fits()) return "more work than 64-bit numbers count";
  switch (call.op()) {
    case QUIRE_OP_EXTEND: return unsupported_extend(args_of<quire_extend_args>(call));
    case QUIRE_OP_ATTEND: return unsupported_attend(args_of<quire_attend_args>(call), shared_bytes);
    case QUIRE_OP_GDN_PREFILL:
    case QUIRE_OP_GDN_DECODE:
    case QUIRE_OP_GDN_VERIFY: {
      const quire_tensor& q = tensor_of(call, "q");
      const std::int64_t keys = q.shape[q.rank - 1];
      return keys > most_keys ? fmt::format("q: keys of {} elements; a warp holds up to {}", keys, most_keys) : std::string();
    }
    default: return {};
  }
}

std::size_t workspace_bytes(const Call& call) {
  if (call.op() != QUIRE_OP_GDN_VERIFY) return 0;
  return static_cast<std::size_t>(verify_bytes(args_of<quire_gdn_verify_args>(call)).value());
}

std::vector<Launch> plan(const Call& call, void* workspace) {
  std::vector<Launch> launches;
  switch (call.op()) {
    case QUIRE_OP_POSITIONS: {
      const auto& args = args_of<quire_positions_args>(call);
      add(launches, positions(), work_of(call).over(block_threads), tokens_parameters(args, args.positions));
      break;
    }
    case QUIRE_OP_MASK: {
      const auto& args = args_of<quire_mask_args>(call);
      add(launches, mask(), work_of(call).over(block_threads), tokens_parameters(args, args.mask));
      break;
    }
    case QUIRE_OP_ADVANCE: {
      const auto& args = args_of<quire_advance_args>(call);
      add(launches, advance(), args.index->pos->shape[0], tokens_parameters(args, args.positions), shared_of_advance);
      break;
    }
    case QUIRE_OP_EXTEND: plan_extend(args_of<quire_extend_args>(call), launches); break;
    case QUIRE_OP_ATTEND: plan_attend(args_of<quire_attend_args>(call), launches); break;
    case QUIRE_OP_GDN_PREFILL: plan_prefill(args_of<quire_gdn_prefill_args>(call), launches); break;
    case QUIRE_OP_GDN_DECODE: plan_decode(args_of<quire_gdn_decode_args>(call), launches); break;
    case QUIRE_OP_GDN_VERIFY: plan_verify(args_of<quire_gdn_verify_args>(call), workspace, launches); break;
    case QUIRE_OP_GDN_PREFILL_SLOTS: plan_slots(args_of<quire_gdn_slots_args>(call), gdn_prefill_slots(), launches); break;
    default: plan_slots(args_of<quire_gdn_slots_args>(call), gdn_decode_slots(), launches); break;
  }
  return launches;
}

}  // namespace quire::gpu
