// Calls of the gated delta rule that core's tests share, and the rule itself in plain loops.
#pragma once

#include "core_test_helpers.h"

#include <cmath>

namespace quire::test {

/// Heads and sizes of the tests' calls: two query heads to each of two key and value heads, K = 5, V = 3.
struct Rule {
  std::int64_t query_heads = 4, key_heads = 2, value_heads = 2, key_size = 5, value_size = 3;
  std::int64_t heads() const { return std::max(query_heads, value_heads); }
};

/// Inputs of [T, heads, *] with general values.
inline GdnInputs rule_inputs(std::int64_t tokens, std::uint64_t seed, const Rule& rule = {}, DType dtype = DType::f32) {
  GdnInputs inputs;
  inputs.q = filled(dtype, {tokens, rule.query_heads, rule.key_size}, seed);
  inputs.k = filled(dtype, {tokens, rule.key_heads, rule.key_size}, seed + 1);
  inputs.v = filled(dtype, {tokens, rule.value_heads, rule.value_size}, seed + 2);
  inputs.g = filled(DType::f32, {tokens, rule.heads()}, seed + 3, 0.7, 1);
  inputs.beta = filled(DType::f32, {tokens, rule.heads()}, seed + 4, 0, 1);
  return inputs;
}

/// Inputs on which every state is exact in float32: keys are unit vectors, values small integers, gates powers of two.
inline GdnInputs exact_inputs(std::int64_t tokens, std::uint64_t seed, const Rule& rule = {}) {
  GdnInputs inputs = rule_inputs(tokens, seed, rule);
  std::uint64_t n = seed << 16;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t h = 0; h < rule.key_heads; ++h) {
      const auto one = static_cast<std::int64_t>(mixed(n++) % static_cast<std::uint64_t>(rule.key_size));
      for (std::int64_t d = 0; d < rule.key_size; ++d) inputs.k.data<float>()[(t * rule.key_heads + h) * rule.key_size + d] = d == one ? 1.0f : 0.0f;
    }
  }
  for_elements(inputs.v, [&](std::int64_t, std::byte* e) { write_number(DType::f32, e, static_cast<double>(mixed(n++) % 7) - 3); });
  for_elements(inputs.g, [&](std::int64_t, std::byte* e) { write_number(DType::f32, e, mixed(n++) % 4 == 0 ? 0.5 : 1); });
  for_elements(inputs.beta, [&](std::int64_t, std::byte* e) { write_number(DType::f32, e, mixed(n++) % 2 == 0 ? 0.5 : 1); });
  return inputs;
}

/// Tokens [begin, begin + count) of every input.
inline GdnInputs part(const GdnInputs& inputs, std::int64_t begin, std::int64_t count) {
  GdnInputs cut = inputs;
  for (Tensor* tensor : {&cut.q, &cut.k, &cut.v, &cut.g, &cut.beta}) {
    if (tensor->defined()) *tensor = tensor->slice(begin, count);
  }
  return cut;
}

/// [T, ...] as [batch, T / batch, ...].
inline GdnInputs as_batch(const GdnInputs& inputs, std::int64_t batch) {
  GdnInputs turned = inputs;
  for (Tensor* tensor : {&turned.q, &turned.k, &turned.v, &turned.g, &turned.beta}) {
    if (!tensor->defined()) continue;
    Shape shape = tensor->shape();
    shape.insert(shape.begin(), batch);
    shape[1] /= batch;
    *tensor = tensor->clone().reshaped(shape);
  }
  return turned;
}

/// One sequence from `initial` (undefined: zero), its final state in a new tensor.
inline GdnPrefilled prefill(const GdnInputs& inputs, const Tensor& initial = {}) {
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = i64({0, inputs.q.size(0)}, {2});
  call.initial_state = initial;
  call.output_final_state = true;
  return gdn_prefill(std::move(call));
}

/// E1, E2 in float64: one sequence's outputs [T, H, V] and final state [H, V, K].
struct ByHand {
  std::vector<double> output, state;
};
inline ByHand rule_by_hand(const GdnInputs& in, const Rule& rule, double scale, bool l2norm, const Tensor& initial = {}) {
  const std::int64_t heads = rule.heads(), K = rule.key_size, V = rule.value_size;
  ByHand result;
  result.state.assign(static_cast<std::size_t>(heads * V * K), 0.0);
  const auto S = [&](std::int64_t h, std::int64_t v, std::int64_t k) -> double& { return result.state[static_cast<std::size_t>((h * V + v) * K + k)]; };
  for (std::int64_t n = 0; initial.defined() && n < heads * V * K; ++n) {
    result.state[static_cast<std::size_t>(n)] = initial.number(Shape{n / (V * K), n / K % V, n % K});
  }
  const auto row = [&](const Tensor& tensor, std::int64_t t, std::int64_t h, std::int64_t of) {
    std::vector<double> values;
    double squares = 0;
    for (std::int64_t d = 0; d < K; ++d) {
      values.push_back(tensor.number(Shape{t, h / (heads / of), d}));
      squares += values.back() * values.back();
    }
    for (double& value : values) value /= l2norm ? std::sqrt(squares + 1e-6) : 1;
    return values;
  };
  for (std::int64_t t = 0; t < in.q.size(0); ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::vector<double> q = row(in.q, t, h, rule.query_heads), k = row(in.k, t, h, rule.key_heads);
      const double g = in.g.defined() ? in.g.number(Shape{t, h}) : 1;
      const double beta = in.beta.defined() ? in.beta.number(Shape{t, h}) : 1;
      for (std::int64_t v = 0; v < V; ++v) {
        double prediction = 0, out = 0;
        for (std::int64_t d = 0; d < K; ++d) prediction += g * S(h, v, d) * k[static_cast<std::size_t>(d)];
        const double r = beta * (in.v.number(Shape{t, h / (heads / rule.value_heads), v}) - prediction);
        for (std::int64_t d = 0; d < K; ++d) {
          S(h, v, d) = g * S(h, v, d) + r * k[static_cast<std::size_t>(d)];
          out += S(h, v, d) * q[static_cast<std::size_t>(d)];
        }
        result.output.push_back(scale * out);
      }
    }
  }
  return result;
}
inline void check_near(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> found = numbers(got);
  REQUIRE(found.size() == expected.size());
  for (std::size_t n = 0; n < found.size(); ++n) CHECK(std::fabs(found[n] - expected[n]) <= tolerance * (1 + std::fabs(expected[n])));
}

}  // namespace quire::test
