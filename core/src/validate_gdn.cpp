// Validation of the gated delta rule (laws E1-E9, F2).
#include <quire/index_view.h>

#include "require.h"
#include "validate.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace quire::validate {

namespace {

IntegerView integers(const quire_tensor& view) { return IntegerView(&view); }

// E1: [lead..., heads, size] in q's dtype; the leading axes are q's.
void gdn_input(const Tensor& tensor, std::string_view argument, const Tensor& q, std::size_t lead) {
  const Shape expected(q.shape().begin(), q.shape().begin() + static_cast<std::ptrdiff_t>(lead));
  const std::string allowed = fmt::format("{} {} and two axes more, none of those empty", name(q.dtype()), to_string(expected));
  require_present(tensor, argument, q.device(), allowed);
  const Shape& shape = tensor.shape();
  if (tensor.dtype() != q.dtype() || shape.size() != lead + 2 || shape[lead] < 1 || shape[lead + 1] < 1 ||
      !std::equal(expected.begin(), expected.end(), shape.begin())) {
    reject(argument, describe(tensor), allowed);
  }
}

// `lead` names the axes before the heads; a negative one may have any size.
GdnSizes gdn_inputs(const GdnInputs& inputs, const Shape& lead, std::string_view axes) {
  const auto& [q, k, v, g, beta, scale, use_qk_l2norm] = inputs;
  const std::string allowed = fmt::format("f16, bf16, f32 or f64 [{}, Hq, K], no heads or keys of size 0", axes);
  if (!q.defined()) reject("q", "nothing", allowed);
  require_layout(q, "q");
  bool right = is_compute_float(q.dtype()) && q.shape().size() == lead.size() + 2;
  for (std::size_t axis = 0; right && axis < lead.size(); ++axis) right = lead[axis] < 0 || q.shape()[axis] == lead[axis];
  if (!right || q.shape()[lead.size()] < 1 || q.shape()[lead.size() + 1] < 1) reject("q", describe(q), allowed);
  gdn_input(k, "k", q, lead.size());
  gdn_input(v, "v", q, lead.size());
  const std::int64_t query_heads = q.shape()[lead.size()];
  const std::int64_t key_heads = k.shape()[lead.size()];
  const std::int64_t value_heads = v.shape()[lead.size()];
  GdnSizes sizes;
  sizes.lead.assign(q.shape().begin(), q.shape().begin() + static_cast<std::ptrdiff_t>(lead.size()));
  sizes.heads = std::max(query_heads, value_heads);
  sizes.key_size = q.shape().back();
  sizes.value_size = v.shape().back();
  if (k.shape().back() != sizes.key_size) reject("k", describe(k), fmt::format("a last axis of {}, as q's", sizes.key_size));
  if (query_heads >= value_heads) {
    if (key_heads != value_heads) reject("k", fmt::format("{} heads", key_heads), fmt::format("{}, as v's (Hq > Hk = Hv)", value_heads));
    if (query_heads % key_heads != 0) reject("q", fmt::format("{} heads", query_heads), fmt::format("a multiple of the {} of k", key_heads));
  } else {
    if (key_heads != query_heads) reject("k", fmt::format("{} heads", key_heads), fmt::format("{}, as q's (Hv > Hq = Hk)", query_heads));
    if (value_heads % query_heads != 0) reject("v", fmt::format("{} heads", value_heads), fmt::format("a multiple of the {} of q", query_heads));
  }
  Shape gate_shape = sizes.lead;
  gate_shape.push_back(sizes.heads);
  for (const auto& [name, gate] : {std::pair{"g", &g}, {"beta", &beta}}) {
    if (!gate->defined()) continue;
    require_shape(*gate, name, q.device(), gate_shape, "f32");
    if (gate->dtype() != DType::f32) reject(name, describe(*gate), fmt::format("f32 {}", to_string(gate_shape)));
  }
  if (scale && !std::isfinite(*scale)) reject("scale", fmt::format("{}", *scale), "a finite number");
  return sizes;
}

// E1, E5: a pool of states; `rows` below 0 may be any.
void states(const Tensor& tensor, std::string_view argument, const GdnSizes& sizes, const Device& device, std::int64_t rows) {
  const std::string allowed = fmt::format("f32, bf16, f16 or fp8 [{}, {}, {}, {}]", rows < 0 ? "rows" : fmt::to_string(rows), sizes.heads,
                                          sizes.value_size, sizes.key_size);
  require_present(tensor, argument, device, allowed);
  if (!is_state(tensor.dtype()) || tensor.rank() != 4 || (rows >= 0 && tensor.size(0) != rows) || tensor.size(1) != sizes.heads ||
      tensor.size(2) != sizes.value_size || tensor.size(3) != sizes.key_size) {
    reject(argument, describe(tensor), allowed);
  }
}

void apart_from_inputs(const Pool& pool, std::string_view argument, const GdnInputs& inputs) {
  for (const auto& [name, tensor] :
       {std::pair{"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}, {"g", &inputs.g}, {"beta", &inputs.beta}}) {
    require_apart(pool, argument, *tensor, name);
  }
}

// E8: two state tensors are one pool or lie apart.
void one_pool_or_apart(const Pool& pool, std::string_view argument, const Tensor& other, std::string_view other_name) {
  if (other.defined() && pool.defined() && !same_memory(pool.given(), other)) require_apart(pool, argument, other, other_name);
}

// E4. Answers n.
std::int64_t sequence_starts(const Tensor& cu_seqlens, const Device& device, std::optional<std::int64_t> tokens) {
  const std::string allowed = "i32 or i64 [n + 1]: starts at 0, never falls, ends at the number of tokens";
  require_present(cu_seqlens, "cu_seqlens", device, allowed);
  if (!is_index_integer(cu_seqlens.dtype()) || cu_seqlens.rank() != 1 || cu_seqlens.size(0) < 1) {
    reject("cu_seqlens", describe(cu_seqlens), allowed);
  }
  const std::int64_t n = cu_seqlens.size(0) - 1;
  if (!device.is_host()) return n;
  const quire_tensor abi = cu_seqlens.view();
  const IntegerView starts = integers(abi);
  if (starts(0) != 0) reject("cu_seqlens", fmt::format("a first entry of {}", starts(0)), "0");
  for (std::int64_t i = 0; i < n; ++i) {
    if (starts(i + 1) < starts(i)) {
      reject("cu_seqlens", fmt::format("{} after {} at entry {}", starts(i + 1), starts(i), i + 1), "entries that never fall");
    }
  }
  if (tokens && starts(n) != *tokens) reject("cu_seqlens", fmt::format("a last entry of {}", starts(n)), fmt::format("{}, the number of tokens", *tokens));
  return n;
}

// E7, E9: every checkpoint's place lies inside the list of rows (or the pool).
void checkpoints(const GdnPrefill& args, const GdnSizes& sizes, const Device& device, std::int64_t n) {
  const std::int64_t every = args.checkpoint_every_n_tokens.value_or(0);
  if (args.checkpoint_every_n_tokens && (every <= 0 || every % 64 != 0)) {
    reject("checkpoint_every_n_tokens", fmt::format("{}", every), "a positive multiple of 64");
  }
  const std::pair<std::string_view, bool> with_interval[] = {{"state_checkpoints", args.state_checkpoints.defined()},
                                                             {"checkpoint_cu_starts", args.checkpoint_cu_starts.defined()},
                                                             {"checkpoint_state_indices", args.checkpoint_state_indices.defined()},
                                                             {"prefix_lens", args.prefix_lens.defined()}};
  if (every == 0) {
    for (const auto& [name, given] : with_interval) {
      if (given) reject(name, "a tensor", "nothing without checkpoint_every_n_tokens");
    }
    return;
  }
  for (const auto& [name, given] : std::span(with_interval).first(2)) {
    if (!given) reject(name, "nothing", "a tensor where checkpoint_every_n_tokens is given");
  }
  states(args.state_checkpoints.given(), "state_checkpoints", sizes, device, -1);
  const bool one_more = args.checkpoint_cu_starts.rank() == 1 && args.checkpoint_cu_starts.size(0) == n + 1;
  require_integers(args.checkpoint_cu_starts, "checkpoint_cu_starts", device, {one_more ? n + 1 : n});
  std::int64_t places = args.state_checkpoints.given().size(0);
  if (args.checkpoint_state_indices.defined()) {
    const Tensor& rows = args.checkpoint_state_indices;
    if (rows.rank() != 1) reject("checkpoint_state_indices", describe(rows), "i32 or i64 of one axis");
    require_integers(rows, "checkpoint_state_indices", device, rows.shape());
    places = rows.size(0);
  }
  if (args.prefix_lens.defined()) require_integers(args.prefix_lens, "prefix_lens", device, {n});
  if (!device.is_host()) return;
  const quire_tensor lens_abi = args.cu_seqlens.view();
  const quire_tensor starts_abi = args.checkpoint_cu_starts.view();
  const quire_tensor prefix_abi = args.prefix_lens.view();
  const IntegerView cu_seqlens = integers(lens_abi);
  const IntegerView cu_starts = integers(starts_abi);
  const IntegerView prefix_lens = args.prefix_lens.defined() ? integers(prefix_abi) : IntegerView();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t prefix = prefix_lens.defined() ? prefix_lens(i) : 0;
    const std::int64_t length = cu_seqlens(i + 1) - cu_seqlens(i);
    std::int64_t total = 0;
    if (prefix < 0 || __builtin_add_overflow(prefix, length, &total)) {
      reject("prefix_lens", fmt::format("{} for sequence {}", prefix, i), "0 or more, below 2^63 with the new tokens");
    }
    const std::int64_t count = total / every - prefix / every;
    const std::int64_t start = cu_starts(i);
    if (count > 0 && (start < 0 || start > places - count)) {
      reject("checkpoint_cu_starts", fmt::format("{} for sequence {} with {} checkpoints", start, i, count),
             fmt::format("places inside the {} {}", places,
                         args.checkpoint_state_indices.defined() ? "checkpoint_state_indices" : "rows of state_checkpoints"));
    }
  }
}

// F2: among the real tokens that a token sees at a smaller position, the greatest position belongs to one.
void draft_parents(const IndexView& view) {
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      std::int64_t best = -1;
      bool twice = false;
      for (std::int64_t j = 0; j < view.seq(); ++j) {
        const std::int64_t p = view.position(b, j);
        if (p < 0 || p >= view.position(b, i) || !view.draft_sees(b, i, j)) continue;
        twice = p == best || (p < best && twice);
        best = std::max(best, p);
      }
      if (twice) {
        reject("index", fmt::format("token {} of lane {} sees two tokens of position {}", i, b, best), "one parent, at the greatest smaller position");
      }
    }
  }
}

// F2: the slots stored to are distinct, and no other lane's read row.
void draft_states(const IndexView& view, const IntegerView& read, const IntegerView& slots, std::int64_t rows) {
  const auto in_pool = [&](std::int64_t row) { return row >= 0 && row < rows; };
  struct Readers {
    std::int64_t lane;
    bool several;
  };
  std::unordered_map<std::int64_t, Readers> readers;
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    if (!in_pool(read(b)) || view.least(b) < 0) continue;
    const auto [known, is_new] = readers.try_emplace(read(b), Readers{b, false});
    known->second.several |= !is_new;
  }
  std::unordered_set<std::int64_t> written;
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      const std::int64_t slot = slots(b, i);
      if (!view.is_real(b, i) || !in_pool(slot) || !in_pool(read(b))) continue;  // nothing is stored
      if (!written.insert(slot).second) reject("state_slots", fmt::format("slot {} twice (lane {}, token {})", slot, b, i), "distinct slots");
      const auto reader = readers.find(slot);
      if (reader != readers.end() && (reader->second.lane != b || reader->second.several)) {
        reject("state_slots", fmt::format("slot {} of lane {}, which another lane reads", slot, b), "no other lane's read row");
      }
    }
  }
}

}  // namespace

void state_pool(const Pool& pool, const GdnSizes& sizes, const GdnInputs& inputs) {
  states(pool.given(), "state_pool", sizes, inputs.q.device(), -1);
  apart_from_inputs(pool, "state_pool", inputs);
}

GdnSizes gdn_prefill(const GdnPrefill& args) {
  const GdnSizes sizes = gdn_inputs(args.inputs, {-1}, "T");
  const Device device = args.inputs.q.device();
  const std::int64_t n = sequence_starts(args.cu_seqlens, device, sizes.lead[0]);
  const std::int64_t state_rows = args.state_indices.defined() ? -1 : n;
  if (args.initial_state.defined()) states(args.initial_state, "initial_state", sizes, device, state_rows);
  if (args.state_indices.defined()) require_integers(args.state_indices, "state_indices", device, {n});
  if (args.output_state.defined()) states(args.output_state.given(), "output_state", sizes, device, state_rows);
  if (args.output_state_indices.defined()) {
    if (!args.state_indices.defined() || !args.output_state.defined() || !args.output_final_state) {
      reject("output_state_indices", "a tensor", "a tensor only with state_indices, output_state and output_final_state");
    }
    require_integers(args.output_state_indices, "output_state_indices", device, {n});
  }
  checkpoints(args, sizes, device, n);
  for (const auto& [name, pool] : {std::pair{"output_state", &args.output_state}, {"state_checkpoints", &args.state_checkpoints}}) {
    apart_from_inputs(*pool, name, args.inputs);
    for (const auto& [other_name, other] : {std::pair{"cu_seqlens", &args.cu_seqlens},
                                            {"state_indices", &args.state_indices},
                                            {"output_state_indices", &args.output_state_indices},
                                            {"checkpoint_cu_starts", &args.checkpoint_cu_starts},
                                            {"checkpoint_state_indices", &args.checkpoint_state_indices},
                                            {"prefix_lens", &args.prefix_lens}}) {
      require_apart(*pool, name, *other, other_name);
    }
    one_pool_or_apart(*pool, name, args.initial_state, "initial_state");
  }
  if (args.output_state.defined() && args.state_checkpoints.defined()) {
    if (same_memory(args.output_state.given(), args.state_checkpoints.given())) {
      if (args.output_state.is_in_place() != args.state_checkpoints.is_in_place()) {
        reject("state_checkpoints", "output_state's memory, one of them to be changed in place and one to be copied", "the same for both");
      }
    } else if (args.output_state.is_in_place()) {
      require_apart(args.state_checkpoints, "state_checkpoints", args.output_state.given(), "output_state");
    }
  }
  return sizes;
}

GdnSizes gdn_decode(const GdnDecode& args, bool paged) {
  const GdnSizes sizes = gdn_inputs(args.inputs, {-1, 1}, "B, 1");
  const Device device = args.inputs.q.device();
  const std::int64_t batch = sizes.lead[0];
  const std::pair<std::string_view, const Tensor*> raw[] = {{"A_log", &args.A_log}, {"a", &args.a}, {"dt_bias", &args.dt_bias}, {"b", &args.b}};
  bool any_raw = false;
  for (const auto& [name, tensor] : raw) {
    if (!tensor->defined()) continue;
    any_raw = true;
    if (args.inputs.g.defined() || args.inputs.beta.defined()) reject(name, "a tensor beside g or beta", "either the raw gates or g and beta");
  }
  for (const auto& [name, tensor] : raw) {
    if (!any_raw) break;
    const bool per_head = tensor == &args.A_log || tensor == &args.dt_bias;
    require_shape(*tensor, name, device, per_head ? Shape{sizes.heads} : Shape{batch, 1, sizes.heads}, "f16, bf16, f32 or f64");
    if (!is_compute_float(tensor->dtype())) reject(name, describe(*tensor), "f16, bf16, f32 or f64");
  }
  states(args.state_pool.given(), "state_pool", sizes, device, -1);
  apart_from_inputs(args.state_pool, "state_pool", args.inputs);
  for (const auto& [name, tensor] : raw) require_apart(args.state_pool, "state_pool", *tensor, name);
  if (paged) return sizes;
  require_integers(args.state_indices, "state_indices", device, {batch});
  if (args.output_state_indices.defined()) require_integers(args.output_state_indices, "output_state_indices", device, {batch});
  require_apart(args.state_pool, "state_pool", args.state_indices, "state_indices");
  require_apart(args.state_pool, "state_pool", args.output_state_indices, "output_state_indices");
  return sizes;
}

GdnSizes gdn_verify(const Index& index, const GdnInputs& inputs, const Pool& state_pool, const Tensor& state_indices,
                    const Tensor& state_slots) {
  if (!index.draft_tokens()) reject("index", "an index that is no draft", "a draft");
  const GdnSizes sizes = gdn_inputs(inputs, {index.batch(), index.seq()}, fmt::format("{}, {}", index.batch(), index.seq()));
  const Device device = inputs.q.device();
  states(state_pool.given(), "state_pool", sizes, device, -1);
  require_integers(state_indices, "state_indices", device, {index.batch()});
  require_integers(state_slots, "state_slots", device, {index.batch(), index.seq()});
  apart_from_inputs(state_pool, "state_pool", inputs);
  require_apart(state_pool, "state_pool", state_indices, "state_indices");
  require_apart(state_pool, "state_pool", state_slots, "state_slots");
  const std::pair<std::string_view, const Pool*> pools[] = {{"state_pool", &state_pool}};
  index_tensors(index, device, pools);
  if (!device.is_host()) return sizes;

  const IndexAbi abi(index);
  const IndexView view(*abi.get());
  const quire_tensor read_abi = state_indices.view();
  const quire_tensor slot_abi = state_slots.view();
  draft_parents(view);
  draft_states(view, IntegerView(&read_abi), IntegerView(&slot_abi), state_pool.given().size(0));
  return sizes;
}

}  // namespace quire::validate
