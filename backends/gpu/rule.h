// The gated delta rule in kernels: one token for one row v of a head's state, which a warp holds (laws E1-E3, E5).
//
// Rows v of a state do not meet: S <- g S; r_v = beta (v_v - S_v k); S_v <- S_v + r_v k; o_v = scale S_v q. So a warp takes one row of K
// elements, thread l of it elements l, l + width, ...; its sums are a thread's own terms in order, then the warp's tree.
#pragma once

#include "kernels.h"
#include "tensors.h"

namespace quire::gpu {

/// A thread's part of K elements.
struct RowPart {
  float at[row_parts] = {};
};

/// Calls body(n, element) for the elements of a row of `size` that this thread holds.
template <typename Body>
QUIRE_DEVICE void for_part(std::int64_t size, const Body& body) {
  for (int n = 0; n < row_parts; ++n) {
    const std::int64_t element = warp_lane() + static_cast<std::int64_t>(n) * warp_width();
    if (element < size) body(n, element);
  }
}

QUIRE_DEVICE RowPart load_part(const TensorView& tensor, std::int64_t at, std::int64_t size) {
  RowPart part;
  for_part(size, [&](int n, std::int64_t element) { part.at[n] = number_at(tensor, at + element); });
  return part;
}

QUIRE_DEVICE float dot(const RowPart& a, const RowPart& b, std::int64_t size) {
  float sum = 0;
  for_part(size, [&](int n, std::int64_t) { sum += a.at[n] * b.at[n]; });
  return warp_sum(sum);
}

/// E2
QUIRE_DEVICE void normalise(RowPart& x, std::int64_t size) {
  const float norm = sqrt_of(dot(x, x, size) + 1e-6f);
  for_part(size, [&](int n, std::int64_t) { x.at[n] /= norm; });
}

/// A token: its index along the two leading axes (RuleView).
struct TokenPlace {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

QUIRE_DEVICE std::int64_t heads_of(const RuleView& rule) { return rule.output.sizes[2]; }
QUIRE_DEVICE std::int64_t keys_of(const RuleView& rule) { return rule.q.sizes[3]; }
QUIRE_DEVICE std::int64_t values_of(const RuleView& rule) { return rule.v.sizes[3]; }

/// E1: head h reads head h / (H / Hx) of an input.
QUIRE_DEVICE std::int64_t head_offset(const RuleView& rule, const TensorView& input, const TokenPlace& token, std::int64_t head) {
  return offset(input, token.first, token.second, head / (heads_of(rule) / input.sizes[2]));
}

/// E3: softplus is x itself past 20.
QUIRE_DEVICE float softplus(float x) { return x > 20.0f ? x : log1p_of(exp_of(x)); }

struct Gates {
  float decay = 1, beta = 1;
};
QUIRE_DEVICE Gates gates_of(const RuleView& rule, const TokenPlace& token, std::int64_t head) {
  const auto gate = [&](const TensorView& tensor) { return number_at(tensor, offset(tensor, token.first, token.second, head)); };
  Gates gates;
  if (is_present(rule.A_log)) {  // E3
    const float rate = exp_of(number_at(rule.A_log, offset(rule.A_log, head)));
    const float step = softplus(gate(rule.a) + number_at(rule.dt_bias, offset(rule.dt_bias, head)));
    gates.decay = exp_of(-rate * step);
    gates.beta = 1.0f / (1.0f + exp_of(-gate(rule.b)));
    return gates;
  }
  if (is_present(rule.g)) gates.decay = gate(rule.g);
  if (is_present(rule.beta)) gates.beta = gate(rule.beta);
  return gates;
}

/// E6: row v of a head's state; zero where the pool has no such row.
QUIRE_DEVICE RowPart load_state(const TensorView& pool, std::int64_t row, std::int64_t head, std::int64_t v, std::int64_t keys) {
  if (!has_row(pool, row)) return {};
  return load_part(pool, offset(pool, row, head, v), keys);
}

/// E5: rounded once; dropped where the pool has no such row.
QUIRE_DEVICE void store_state(const RowPart& state, const TensorView& pool, std::int64_t row, std::int64_t head, std::int64_t v,
                              std::int64_t keys) {
  if (!has_row(pool, row)) return;
  const std::int64_t at = offset(pool, row, head, v);
  for_part(keys, [&](int n, std::int64_t element) { put_number(pool, at + element, state.at[n]); });
}

QUIRE_DEVICE void put_output(const RuleView& rule, const TokenPlace& token, std::int64_t head, std::int64_t v, float output) {
  if (warp_lane() == 0) put_number(rule.output, offset(rule.output, token.first, token.second, head, v), output);
}

/// The rule: the row after the token, and the token's output.
QUIRE_DEVICE void step(const RuleView& rule, const TokenPlace& token, std::int64_t head, std::int64_t v, RowPart& state) {
  const std::int64_t keys = keys_of(rule);
  RowPart key = load_part(rule.k, head_offset(rule, rule.k, token, head), keys);
  RowPart query = load_part(rule.q, head_offset(rule, rule.q, token, head), keys);
  if (rule.use_qk_l2norm != 0) {
    normalise(key, keys);
    normalise(query, keys);
  }
  const float value = number_at(rule.v, head_offset(rule, rule.v, token, head) + v);
  const Gates gates = gates_of(rule, token, head);
  for_part(keys, [&](int n, std::int64_t) { state.at[n] *= gates.decay; });
  const float error = gates.beta * (value - dot(state, key, keys));
  for_part(keys, [&](int n, std::int64_t) { state.at[n] += error * key.at[n]; });
  put_output(rule, token, head, v, rule.scale * dot(state, query, keys));
}

/// Rows v of all heads of `count` sequences or lanes, one per warp: calls body(sequence, head, v).
template <typename Body>
QUIRE_DEVICE void for_rows(const RuleView& rule, std::int64_t count, const Body& body) {
  const std::int64_t heads = heads_of(rule), values = values_of(rule);
  for (std::int64_t n = block() * warp_count() + warp_number(); n < count * heads * values; n += blocks() * warp_count()) {
    body(n / values / heads, n / values % heads, n % values);
  }
}

}  // namespace quire::gpu
