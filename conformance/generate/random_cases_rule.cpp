// Tokens, gates and state pools of random cases of the gated delta rule.
#include <algorithm>

#include "random_cases_gdn.h"

namespace quire_tests {
namespace {

double gate(Random& random, Style style) {
  if (style == Style::exact) return random.one_of(std::vector<double>{0, 1, 1, 0.5, 0.5, 0.25});
  switch (random.between(0, 7)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return 0.99999994;  // the float32 just below one
    case 3:
      return style == Style::mixed ? 1e-30 : 0.999;
    default:
      return static_cast<double>(random.between(1, 999)) / 1000;
  }
}

double strength(Random& random, Style style, bool tame) {
  if (style == Style::exact || random.chance(30)) {
    return random.one_of(tame ? std::vector<double>{0, 1, 0.5} : std::vector<double>{0, 1, 2, 0.5});
  }
  return static_cast<double>(random.between(0, 1000)) / (tame ? 1000 : 500);
}

Json number(double value) {
  if (value == static_cast<double>(static_cast<std::int64_t>(value))) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

std::string raw_dtype(Random& random) {
  return random.one_of(std::vector<std::string>{"f32", "f32", "bf16", "f16", "f64"});
}

void add_raw_gates(Random& random, const Heads& heads, const Ints& gate_shape, Json& result) {
  const Json edges = {25, 20, -50, 0};
  result["A_log"] = draw_tensor(random, raw_dtype(random), {heads.all}, Style::normals);
  // Long gates: a past the end of float32's exp, and a rate so small that the decay is none of 0 and 1.
  const bool is_long = random.chance(25);
  if (is_long) {
    for (auto& value : result["A_log"]["data"]) value = -5 - random.between(0, 3);
  }
  result["dt_bias"] = draw_tensor(random, raw_dtype(random), {heads.all}, Style::normals);
  for (const char* name : {"a", "b"}) {
    Json& raw = result[name] = draw_tensor(random, raw_dtype(random), gate_shape, Style::normals);
    for (auto& value : raw["data"]) {
      if (is_long && *name == 'a' && random.chance(50)) value = 90 + random.between(0, 120);
      else if (random.chance(15)) value = edges[static_cast<std::size_t>(random.between(0, 3))];
    }
  }
}

}  // namespace

RuleFeatures pick_rule_features(Random& random, bool may_be_raw) {
  RuleFeatures features;
  features.dtype = random.pick_of(std::vector<std::string>{"f32", "bf16", "f16", "f64"});
  features.state_dtype =
      random.pick_of(std::vector<std::string>{"f32", "bf16", "f16", "f8_e4m3fn", "f8_e5m2"});
  features.style = pick_style(random);
  features.heads = random.pick(5);
  features.gates = random.pick(may_be_raw ? 6 : 4);
  features.l2norm = random.pick(3);
  features.scale = random.pick(4);
  return features;
}

Heads draw_heads(Random& random, const RuleFeatures& features, bool small) {
  Heads heads;
  const std::int64_t group = small ? 2 : random.between(2, 3);
  const std::int64_t base = small || group == 3 ? 1 : random.between(1, 2);
  if (features.heads == 0) heads.query = heads.key = heads.value = 1;
  if (features.heads == 1) heads.query = heads.key = heads.value = small ? 2 : random.between(2, 3);
  if (features.heads == 2 || features.heads == 4) {  // GVA, the common one
    heads.query = heads.key = base;
    heads.value = base * group;
  }
  if (features.heads == 3) {  // GQA
    heads.key = heads.value = base;
    heads.query = base * group;
  }
  heads.all = std::max(heads.query, heads.value);
  const std::int64_t most = small ? 3 : heads.all > 2 ? 4 : 7;
  heads.k = random.between(1, most);
  heads.v = random.between(1, most);
  if (heads.k == heads.v && random.chance(70)) heads.v = heads.v % most + 1;
  return heads;
}

void add_tokens(Random& random, const RuleFeatures& features, const Heads& heads, const Ints& lead,
                bool prefill, bool tame, Json& result) {
  const auto shape = [&lead](std::int64_t count, std::int64_t width) {
    Ints axes = lead;
    axes.push_back(count);
    axes.push_back(width);
    return axes;
  };
  result["q"] = draw_tensor(random, features.dtype, shape(heads.query, heads.k), features.style);
  Json& k = result["k"] =
      draw_tensor(random, features.dtype, shape(heads.key, heads.k), features.style);
  result["v"] = draw_tensor(random, features.dtype, shape(heads.value, heads.v), features.style);
  const bool normed = features.l2norm == 1 || (features.l2norm == 0 && !prefill);
  if (!normed) {  // the state stays small where |k| does
    for (auto& value : k["data"]) {
      if (!value.is_number()) continue;
      const auto size = value.get<double>();
      if (tame && features.style != Style::exact) value = size / (size > 1 || size < -1 ? 8 : 2);
      if (features.style == Style::exact && (size > 1 || size < -1)) value = size > 1 ? 1 : -1;
    }
  }
  // Keys that repeat.
  const std::int64_t width = heads.key * heads.k;
  for (std::int64_t token = 1; token < count_of(lead); ++token) {
    if (!random.chance(15)) continue;
    for (std::int64_t place = 0; place < width; ++place) {
      k["data"][static_cast<std::size_t>(token * width + place)] =
          Json(k["data"][static_cast<std::size_t>((token - 1) * width + place)]);
    }
  }
  Ints gate_shape = lead;
  gate_shape.push_back(heads.all);
  if (features.gates >= 4) add_raw_gates(random, heads, gate_shape, result);
  const bool gentle = tame && (!normed || features.gates == 1);
  if (features.gates == 1 || features.gates == 3) {
    Json data = Json::array();
    for (std::int64_t place = 0; place < count_of(gate_shape); ++place) {
      data.push_back(number(gate(random, features.style)));
    }
    result["g"] = tensor("f32", gate_shape, data);
  }
  if (features.gates == 2 || features.gates == 3) {
    Json data = Json::array();
    for (std::int64_t place = 0; place < count_of(gate_shape); ++place) {
      data.push_back(number(strength(random, features.style, gentle)));
    }
    result["beta"] = tensor("f32", gate_shape, data);
  }
  if (features.l2norm > 0) result["use_qk_l2norm"] = features.l2norm == 1;
  if (features.scale == 1) result["scale"] = 1;
  if (features.scale == 2) {
    result["scale"] = number(random.one_of(std::vector<double>{0.5, 0.25, 2, 0.37, -1}));
  }
  if (features.scale == 3 && (prefill || random.chance(20))) result["scale"] = 0;
  if (count_of(lead) > 0 && random.chance(10)) pad_rows(random, result["v"]);
}

void RowPool::close(Random& random, std::int64_t spare) {
  rows_ = shuffled(random, std::max<std::int64_t>(1, taken_ + spare));
}

std::int64_t RowPool::resolve(Random& random, std::int64_t token) const {
  if (token == none) return -1;
  if (token == outside) {
    return random.one_of(Ints{size(), size() + 2, -2, -77, 2147483647});
  }
  return rows_[static_cast<std::size_t>(token)];
}

Ints RowPool::resolve(Random& random, const Ints& tokens) const {
  Ints rows;
  for (const std::int64_t token : tokens) rows.push_back(resolve(random, token));
  return rows;
}

Json draw_states(Random& random, const RuleFeatures& features, const Heads& heads,
                 std::int64_t rows, const Ints& read, bool poisons) {
  Json pool = draw_tensor(random, features.state_dtype, heads.state_shape(rows), features.style);
  for (std::int64_t row = 0; poisons && row < rows; ++row) {
    if (std::find(read.begin(), read.end(), row) == read.end()) poison_row(random, pool, row);
  }
  return pool;
}

}  // namespace quire_tests
