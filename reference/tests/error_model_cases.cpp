// Regimes of keys, decays, write strengths and scores.
#include <algorithm>
#include <cmath>

#include "error_model_calls.h"

namespace error_model_tests {

std::uint64_t Random::bits() {  // SplitMix64
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

void hold(std::vector<float>& values, quire::DType dtype) {
  Buffer buffer(dtype, {static_cast<std::int64_t>(values.size())}, values);
  const std::vector<double> held = buffer.values();
  for (std::size_t i = 0; i < held.size(); ++i) values[i] = static_cast<float>(held[i]);
}

namespace {

using quire::DType;

std::vector<float> filled(std::int64_t n, const std::function<double()>& draw) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(draw()));
  return values;
}

double length_of(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

std::string draw_keys(Random& random, RuleDraw& rule) {
  const std::int64_t n = rule.tokens * rule.keys;
  const std::string kind = random.one_of<const char*>({"random", "correlated", "repeated", "one-hot", "integers", "positive", "outlier"});
  const auto normal = [&] { return random.normal(); };
  rule.q = filled(n, normal);
  if (kind == "integers") {
    rule.k = filled(n, [&] { return static_cast<double>(random.below(3) - 1); });
  } else if (kind == "positive") {
    rule.k = filled(n, [&] { return std::fabs(random.normal()); });
  } else {
    rule.k = filled(n, normal);
  }
  const std::int64_t few = random.one_of<std::int64_t>({1, 1, 2, 5});
  const float near = random.one_of({0.3F, 0.01F, 1e-5F});
  for (std::int64_t t = 0; t < rule.tokens; ++t) {
    float* k = rule.k.data() + t * rule.keys;
    if (kind == "one-hot") {
      std::fill(k, k + rule.keys, 0.0F);
      k[random.below(rule.keys)] = 1;
    }
    if (kind == "outlier") k[0] *= 30;
    for (std::int64_t i = 0; i < rule.keys; ++i) {
      if (kind == "correlated") k[i] = rule.k[static_cast<std::size_t>(i)] + (t > 0 ? near * k[i] : 0);
      if (kind == "repeated" && t >= few) k[i] = k[i - few * rule.keys];
    }
  }
  // Without l2norm keys are about as long as with it, or a little off.
  rule.normalise = random.below(2) == 0;
  const double size = rule.normalise ? random.one_of({1.0, 1.0, 0.05, 0.003, 30.0}) : random.one_of({1.0, 1.0, 0.5, 1.2});
  for (std::int64_t t = 0; t < rule.tokens; ++t) {
    float* k = rule.k.data() + t * rule.keys;
    const double length = length_of(k, rule.keys);
    for (std::int64_t i = 0; i < rule.keys && length > 0 && kind != "one-hot"; ++i) k[i] = static_cast<float>(size * k[i] / length);
    if (random.below(4) == 0) std::copy(k, k + rule.keys, rule.q.data() + t * rule.keys);
  }
  return kind;
}

std::string draw_decays(Random& random, RuleDraw& rule) {
  const std::string kind = random.one_of<const char*>({"1", "near 1", "0.9..1", "0.2..1", "0 or", "0.5", "0.97"});
  const double near = 1 - std::ldexp(1 + static_cast<double>(random.below(7)), -24 + static_cast<int>(random.below(14)));
  rule.g = filled(rule.tokens, [&] {
    if (kind == "1") return 1.0;
    if (kind == "near 1") return near;
    if (kind == "0.9..1") return random.between(0.9, 1);
    if (kind == "0.2..1") return random.between(0.2, 1);
    if (kind == "0 or") return random.below(12) == 0 ? 0.0 : random.between(0.7, 1);
    return kind == "0.5" ? 0.5 : 0.97;
  });
  return kind;
}

std::string draw_betas(Random& random, RuleDraw& rule) {
  const std::string kind = random.one_of<const char*>({"0", "1", "2", "0..1", "0..2", "small"});
  rule.beta = filled(rule.tokens, [&] {
    if (kind == "0") return random.below(10) == 0 ? 1.0 : 0.0;
    if (kind == "1" || kind == "2") return kind == "1" ? 1.0 : 2.0;
    if (kind == "small") return 1.0 / 64;
    return random.between(0, kind == "0..1" ? 1 : 2);
  });
  return kind;
}

std::string draw_values(Random& random, RuleDraw& rule) {
  const std::string kind = random.one_of<const char*>({"normal", "normal", "constant", "repeated", "outlier", "integers", "tiny", "huge"});
  const double size = kind == "tiny" ? 1e-36 : kind == "huge" ? 1e25 : 1;
  rule.v = filled(rule.tokens * rule.values, [&] {
    return kind == "constant" ? 0.7 : kind == "integers" ? static_cast<double>(random.below(5) - 2) : size * random.normal();
  });
  for (std::int64_t t = 0; t < rule.tokens; ++t) {
    for (std::int64_t d = 0; d < rule.values; ++d) {
      float& v = rule.v[static_cast<std::size_t>(t * rule.values + d)];
      if (kind == "repeated") v = rule.v[static_cast<std::size_t>(d)];
      if (kind == "outlier" && d == 0) v *= 1e4F;
    }
  }
  return kind;
}

std::int64_t draw_size(Random& random, std::int64_t most) {
  return std::min(most, random.one_of<std::int64_t>({1, 2, 3, 4, 7, 8, 16, 16, 31, 32, 32, 64, 128}));
}

}  // namespace

RuleDraw draw_rule(std::uint64_t number, std::int64_t most_tokens, std::int64_t most_size) {
  Random random(number * 2 + 1);
  RuleDraw rule;
  rule.tokens = std::min(most_tokens, random.one_of<std::int64_t>({1, 2, 5, 17, 40, 64, 65, 100, 130, 200, 512}));
  rule.keys = draw_size(random, most_size);
  rule.values = std::min<std::int64_t>(draw_size(random, most_size), 1024 / rule.keys + 1);
  rule.dtype = random.one_of({DType::f32, DType::f32, DType::f16, DType::bf16});
  rule.state_dtype = random.one_of({DType::f32, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3fn, DType::f8_e5m2});
  const std::string keys = draw_keys(random, rule), decays = draw_decays(random, rule), betas = draw_betas(random, rule);
  const std::string values = draw_values(random, rule);
  if (values == "huge" || values == "tiny") rule.dtype = rule.state_dtype = DType::f32;
  const double size = values == "huge" ? 1e25 : values == "tiny" ? 1e-36 : 1;
  const bool fresh = random.below(3) == 0;
  rule.state = filled(rule.keys * rule.values, [&] { return fresh ? 0.0 : size * random.normal(); });
  rule.scale = random.below(2) == 0 ? 1.0F : static_cast<float>(1 / std::sqrt(static_cast<double>(rule.keys)));
  for (std::vector<float>* x : {&rule.q, &rule.k, &rule.v}) hold(*x, rule.dtype);
  hold(rule.state, rule.state_dtype);
  rule.regime = "keys " + keys + ", decays " + decays + ", beta " + betas + ", values " + values;
  return rule;
}

AttendDraw draw_attend(std::uint64_t number, std::int64_t most_columns, std::int64_t most_size) {
  Random random(number * 2);
  AttendDraw attend;
  attend.columns = std::min(most_columns, random.one_of<std::int64_t>({1, 2, 16, 50, 64, 130, 300, 700, 2000}));
  attend.size = draw_size(random, most_size);
  attend.values = draw_size(random, attend.columns > 500 ? 8 : 32);
  attend.dtype = random.one_of({DType::f32, DType::f32, DType::f16, DType::bf16});
  const auto normal = [&] { return random.normal(); };
  attend.q = filled(attend.size, normal);
  attend.k = filled(attend.columns * attend.size, normal);
  attend.v = filled(attend.columns * attend.values, normal);
  const std::string scores =
      random.one_of<const char*>({"normal", "flat", "equal", "sharp", "one-hot", "few keys", "integers", "holes", "nearly flat"});
  const std::string values =
      random.one_of<const char*>({"normal", "normal", "constant", "positive", "outlier", "sorted", "huge", "tiny", "repeated"});
  const auto row = [&](std::int64_t j) { return attend.k.data() + j * attend.size; };
  const std::int64_t few = random.one_of<std::int64_t>({1, 2, 7});
  for (std::int64_t j = 0; j < attend.columns; ++j) {
    for (std::int64_t d = 0; d < attend.size; ++d) {
      float& k = row(j)[d];
      if (scores == "flat") k = 0;
      if (scores == "nearly flat") k *= 0.01F;
      if (scores == "equal") k = j == attend.columns / 2 ? attend.q[static_cast<std::size_t>(d)] : 0.1F;
      if (scores == "sharp") k *= 30;
      if (scores == "one-hot" && j == attend.columns / 3) k = 40 * attend.q[static_cast<std::size_t>(d)];
      if (scores == "few keys" && j >= few) k = row(j - few)[d];
      if (scores == "integers") k = std::round(k);
    }
    if (scores == "holes" && random.below(3) > 0 && j + 1 < attend.columns) attend.holes.push_back(j);
    for (std::int64_t d = 0; d < attend.values; ++d) {
      float& v = attend.v[static_cast<std::size_t>(j * attend.values + d)];
      if (values == "constant") v = 0.7F;
      if (values == "positive" || values == "sorted") v = std::fabs(v);
      if (values == "outlier" && j == attend.columns / 2) v *= 1000;
      if (values == "huge") v *= 1e25F;
      if (values == "tiny") v *= 1e-36F;
      if (values == "repeated" && j >= few) v = attend.v[static_cast<std::size_t>((j - few) * attend.values + d)];
    }
  }
  if (values == "sorted") std::sort(attend.v.begin(), attend.v.end());
  if (scores == "integers") {
    for (float& q : attend.q) q = std::round(q);
  }
  if (values == "huge" || values == "tiny") attend.dtype = DType::f32;
  for (const std::int64_t j : attend.holes) {
    std::fill_n(row(j), attend.size, 0.0F);
    std::fill_n(attend.v.data() + j * attend.values, attend.values, 0.0F);
  }
  for (std::vector<float>* x : {&attend.q, &attend.k, &attend.v}) hold(*x, attend.dtype);
  attend.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attend.size)));
  if (random.below(5) == 0) attend.softcap = random.one_of({0.5F, 5.0F, 50.0F});
  attend.has_sink = random.below(4) == 0;
  attend.sink = static_cast<float>(3 * random.normal());
  attend.regime = "scores " + scores + ", values " + values + (attend.softcap > 0 ? ", softcap" : "") + (attend.has_sink ? ", sink" : "");
  return attend;
}

RuleDraw typical_rule(std::uint64_t number) {
  Random random(number);
  RuleDraw rule;
  rule.tokens = 96;
  rule.keys = 64;
  rule.values = 16;
  for (std::int64_t n = 0; n < rule.tokens * rule.keys; ++n) {
    rule.q.push_back(static_cast<float>(random.normal()));
    rule.k.push_back(static_cast<float>(random.normal() / 8));
  }
  for (std::int64_t n = 0; n < rule.tokens * rule.values; ++n) rule.v.push_back(static_cast<float>(random.normal()));
  for (std::int64_t n = 0; n < rule.keys * rule.values; ++n) rule.state.push_back(static_cast<float>(random.normal()));
  for (std::int64_t t = 0; t < rule.tokens; ++t) {
    rule.g.push_back(static_cast<float>(random.between(0.9, 1)));
    rule.beta.push_back(static_cast<float>(random.between(0.2, 1)));
  }
  rule.scale = 0.125F;
  rule.regime = "typical";
  return rule;
}

AttendDraw typical_attend(std::uint64_t number) {
  Random random(number);
  AttendDraw attend;
  attend.columns = 200;
  attend.size = 64;
  attend.values = 16;
  for (std::int64_t n = 0; n < attend.size; ++n) attend.q.push_back(static_cast<float>(random.normal()));
  for (std::int64_t n = 0; n < attend.columns * attend.size; ++n) attend.k.push_back(static_cast<float>(random.normal()));
  for (std::int64_t n = 0; n < attend.columns * attend.values; ++n) attend.v.push_back(static_cast<float>(random.normal()));
  attend.scale = 0.125F;
  attend.regime = "typical";
  return attend;
}

}  // namespace error_model_tests
