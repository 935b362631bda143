// The literal implementation of E1-E9: the gated delta rule, its prefill and its decode.
#include <algorithm>
#include <cmath>

#include "literal_parts.h"

namespace quire_literal {

namespace {

std::vector<double> head_row(const Tensor& tensor, Int n, Int heads, Int head, Int width) {
  const auto first = tensor.real.begin() + (n * heads + head) * width;
  return std::vector<double>(first, first + width);
}

// E2: divided by sqrt(sum of squares + 1e-6), before scale.
std::vector<double> normalized(const std::vector<double>& x) {
  double squares = 0;
  for (double element : x) squares += element * element;
  std::vector<double> result;
  for (double element : x) result.push_back(element / std::sqrt(squares + 1e-6));
  return result;
}

// E1: g and beta are ones when absent. E3: they may have been formed from raw inputs.
double gate(const std::optional<Tensor>& given, const std::vector<double>& raw, Int place) {
  if (given) return given->real[static_cast<std::size_t>(place)];
  if (!raw.empty()) return raw[static_cast<std::size_t>(place)];
  return 1;
}

// S <- g * S;  r = beta * (v - S k);  S <- S + r k^T;  o = scale * S q
void gated_head(const Gated& in, Int n, Int h, double* s, double* o) {
  std::vector<double> q = head_row(in.q, n, in.q_heads, h / (in.heads / in.q_heads), in.key);
  std::vector<double> k = head_row(in.k, n, in.k_heads, h / (in.heads / in.k_heads), in.key);
  const std::vector<double> v =
      head_row(in.v, n, in.v_heads, h / (in.heads / in.v_heads), in.value);
  if (in.l2norm) {
    q = normalized(q);
    k = normalized(k);
  }
  const double g = gate(in.g, in.raw_g, n * in.heads + h);
  const double beta = gate(in.beta, in.raw_beta, n * in.heads + h);
  const auto width = static_cast<std::size_t>(in.key);
  for (std::size_t a = 0; a < v.size(); ++a) {
    double* row = s + a * width;
    for (std::size_t c = 0; c < width; ++c) row[c] = g * row[c];
    double dot = 0;
    for (std::size_t c = 0; c < width; ++c) dot += row[c] * k[c];
    const double r = beta * (v[a] - dot);
    for (std::size_t c = 0; c < width; ++c) row[c] = row[c] + r * k[c];
    double read = 0;
    for (std::size_t c = 0; c < width; ++c) read += row[c] * q[c];
    o[a] = in.scale * read;
  }
}

void require_like_q(const Tensor& tensor, const Tensor& q, Int leading_axes,
                    const std::string& field) {
  if (tensor.dtype != q.dtype) reject(field, "dtype differs from q's");
  if (tensor.rank() != leading_axes + 2) reject(field, "wrong number of axes");
  for (Int axis = 0; axis < leading_axes; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (tensor.shape[at] != q.shape[at]) reject(field, "other tokens than q's");
  }
}

void require_gate(const Tensor& tensor, const Gated& in, Int leading_axes,
                  const std::string& field) {
  std::vector<Int> shape(in.q.shape.begin(), in.q.shape.begin() + leading_axes);
  shape.push_back(in.heads);
  if (tensor.dtype != "f32") reject(field, "not float32");
  if (tensor.shape != shape) reject(field, "not one value for each token and head");
}

}  // namespace

// E1: q [T,Hq,K], k [T,Hk,K], v [T,Hv,V], g and beta [T,H] float32, H = max(Hq,Hv). GQA
// (Hq > Hk = Hv) and GVA (Hv > Hq = Hk). scale absent means 1/sqrt(K); in prefill 0 means that too.
Gated read_gated(Fields& fields, Int leading_axes, bool zero_scale_is_default, bool l2norm) {
  Gated in;
  in.q = *fields.tensor("q");
  if (!wide_float(in.q.dtype)) reject("q", "dtype not f16, bf16, f32 or f64");
  if (in.q.rank() != leading_axes + 2) reject("q", "wrong number of axes");
  const auto head_axis = static_cast<std::size_t>(leading_axes);
  in.q_heads = in.q.shape[head_axis];
  in.key = in.q.shape[head_axis + 1];
  if (in.q_heads == 0 || in.key == 0) reject("q", "no head or an empty head");
  in.k = *fields.tensor("k");
  require_like_q(in.k, in.q, leading_axes, "k");
  in.k_heads = in.k.shape[head_axis];
  if (in.k.shape[head_axis + 1] != in.key) reject("k", "K differs from q's");
  in.v = *fields.tensor("v");
  require_like_q(in.v, in.q, leading_axes, "v");
  in.v_heads = in.v.shape[head_axis];
  in.value = in.v.shape[head_axis + 1];
  in.heads = std::max(in.q_heads, in.v_heads);
  if (in.q_heads >= in.v_heads) {
    if (in.k_heads != in.v_heads || in.k_heads == 0) reject("k", "Hk is not Hv");
    if (in.q_heads % in.k_heads != 0) reject("q", "Hq is not a multiple of Hk");
  } else {
    if (in.k_heads != in.q_heads) reject("k", "Hk is not Hq");
    if (in.v_heads % in.k_heads != 0) reject("v", "Hv is not a multiple of Hk");
  }
  in.tokens = 1;
  for (std::size_t axis = 0; axis < head_axis; ++axis) in.tokens *= in.q.shape[axis];
  if (fields.has("g")) {
    in.g = *fields.tensor("g");
    require_gate(*in.g, in, leading_axes, "g");
  }
  if (fields.has("beta")) {
    in.beta = *fields.tensor("beta");
    require_gate(*in.beta, in, leading_axes, "beta");
  }
  in.scale = fields.has("scale") ? fields.number("scale") : 0;
  if (!fields.has("scale") || (zero_scale_is_default && in.scale == 0)) {
    in.scale = 1 / std::sqrt(static_cast<double>(in.key));
  }
  in.l2norm = fields.flag("use_qk_l2norm", l2norm);
  return in;
}

// One token of every head, from the state and into it; its output goes into `out`, unrounded.
void gated_token(const Gated& in, Int n, State& state, std::vector<double>& out) {
  for (Int h = 0; h < in.heads; ++h) {
    gated_head(in, n, h, state.data() + h * in.value * in.key,
               out.data() + (n * in.heads + h) * in.value);
  }
}

// E1: out [T,H,V], of q's dtype.
Tensor gated_output(const Gated& in, const std::vector<double>& out) {
  std::vector<Int> shape(in.q.shape.begin(), in.q.shape.end() - 2);
  shape.push_back(in.heads);
  shape.push_back(in.value);
  Tensor tensor = zeros(in.q.dtype, shape);
  for (std::size_t e = 0; e < out.size(); ++e) tensor.real[e] = round_to(in.q.dtype, out[e]);
  return tensor;
}

// E1: states [*,H,V,K]; E5: float32, bfloat16, float16, fp8 e4m3fn or e5m2.
void require_state(const Tensor& pool, const Gated& in, const std::string& field) {
  if (!state_float(pool.dtype)) reject(field, "not a dtype of states");
  if (pool.rank() != 4 || pool.shape[1] != in.heads || pool.shape[2] != in.value ||
      pool.shape[3] != in.key) {
    reject(field, "not [*,H,V,K]");
  }
}

bool row_in_pool(const Tensor& pool, Int row) { return row >= 0 && row < pool.shape[0]; }

// E6: -1 starts from zero; any other row outside the pool is zero too.
State read_state(const Shared& pool, Int row, const Gated& in) {
  const Int size = in.heads * in.value * in.key;
  State state(static_cast<std::size_t>(size), 0.0);
  if (!pool || !row_in_pool(*pool, row)) return state;
  for (Int e = 0; e < size; ++e) {
    state[static_cast<std::size_t>(e)] = pool->real[static_cast<std::size_t>(row * size + e)];
  }
  return state;
}

// E5: rounded once, when it is stored. E6: a store to a row outside the pool is dropped.
void store_state(const Shared& pool, Int row, const State& state) {
  if (!row_in_pool(*pool, row)) return;
  for (std::size_t e = 0; e < state.size(); ++e) {
    pool->real[static_cast<std::size_t>(row) * state.size() + e] =
        round_to(pool->dtype, state[e]);
  }
}

namespace {

// E7: after new token x (from 1) when (prefix + x) % n == 0, the j-th goes to its row.
void store_checkpoint(const Prefill& how, std::size_t sequence, Int j, const State& state) {
  const Int ordinal = how.checkpoint_starts[sequence] + j;
  const Int row =
      how.checkpoint_rows ? (*how.checkpoint_rows)[static_cast<std::size_t>(ordinal)] : ordinal;
  store_state(how.checkpoints, row, state);
}

}  // namespace

// E4: no value crosses a boundary; a zero-length sequence writes nothing (a final state that the
// call itself allocates holds its initial state). E9: a read row is read before it is written.
Tensor run_prefill(const Gated& in, const Prefill& how) {
  std::vector<double> out(static_cast<std::size_t>(in.tokens * in.heads * in.value), 0.0);
  const std::size_t sequences = how.cu_seqlens.size() - 1;
  std::vector<State> states;
  for (std::size_t i = 0; i < sequences; ++i) {
    const Int row = how.read_rows ? (*how.read_rows)[i] : static_cast<Int>(i);
    states.push_back(read_state(how.initial, row, in));
  }
  for (std::size_t i = 0; i < sequences; ++i) {
    const Int first = how.cu_seqlens[i];
    const Int length = how.cu_seqlens[i + 1] - first;
    if (length == 0) continue;
    const Int prefix = how.prefix ? (*how.prefix)[i] : 0;
    Int taken = 0;
    for (Int token = 1; token <= length; ++token) {
      gated_token(in, first + token - 1, states[i], out);
      if (how.interval == 0 || (Wide(prefix) + token) % how.interval != 0) continue;
      store_checkpoint(how, i, taken, states[i]);
      ++taken;
    }
    if (!how.store_final) continue;
    Int row = static_cast<Int>(i);
    if (how.read_rows) row = (*how.read_rows)[i];
    if (how.write_rows) row = (*how.write_rows)[i];
    store_state(how.output, row, states[i]);
  }
  return gated_output(in, out);
}

// E6: in decode a read row outside the pool, -1 included, marks a padded sequence: its output is
// zero and nothing is stored for it.
Tensor run_decode(const Gated& in, const Shared& pool, const std::vector<Int>& read_rows,
                  const std::vector<Int>& write_rows) {
  std::vector<double> out(static_cast<std::size_t>(in.tokens * in.heads * in.value), 0.0);
  std::vector<State> states;
  for (Int row : read_rows) states.push_back(read_state(pool, row, in));
  for (std::size_t b = 0; b < read_rows.size(); ++b) {
    if (!row_in_pool(*pool, read_rows[b])) continue;
    gated_token(in, static_cast<Int>(b), states[b], out);
    store_state(pool, write_rows[b], states[b]);
  }
  return gated_output(in, out);
}

// E4: it starts at 0, never falls, ends at T (`tokens`; a negative one is not looked at).
std::vector<Int> read_cu_seqlens(Fields& fields, Int tokens) {
  const std::vector<Int> cu = fields.int_list("cu_seqlens", -1);
  if (cu.empty() || cu[0] != 0) reject("cu_seqlens", "does not start at 0");
  for (std::size_t i = 1; i < cu.size(); ++i) {
    if (cu[i] < cu[i - 1]) reject("cu_seqlens", "falls");
  }
  if (tokens >= 0 && cu.back() != tokens) reject("cu_seqlens", "does not end at T");
  return cu;
}

}  // namespace quire_literal
