// Softmax: direct, online and split.
#include "softmax.h"

#include <algorithm>
#include <limits>

namespace quire::conformance::honest {

namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

// The greater one, or NaN where one is.
float greater(float a, float b) { return b > a || b != b ? b : a; }

// exp(x - maximum); an infinitely small score has no weight whatever the maximum.
float weight_of(float x, float maximum) { return x == nothing ? 0.0F : std::exp(x - maximum); }

void add(Sums& sums, float weight, const float* value, const Arithmetic& arithmetic, const Setting& setting) {
  sums.weight += weight;
  weight = rounded_to(setting.options.stored, weight);
  if (setting.is(Fault::weights_in_bf16)) weight = rounded_to(DType::bf16, weight);
  if (value != nullptr) arithmetic.add_scaled(sums.values.data(), weight, value, static_cast<std::int64_t>(sums.values.size()));
}

Sums direct(const Weighed* columns, std::int64_t count, std::int64_t value_size, float sink, const Arithmetic& arithmetic,
            const Setting& setting) {
  Sums sums{sink, 0, std::vector<float>(static_cast<std::size_t>(value_size))};
  for (std::int64_t c = 0; c < count; ++c) sums.maximum = greater(sums.maximum, columns[c].score);
  if (setting.is(Fault::no_maximum_subtracted)) sums.maximum = 0;
  arithmetic.in_order(count,
                      [&](std::int64_t c) { add(sums, weight_of(columns[c].score, sums.maximum), columns[c].value, arithmetic, setting); });
  return sums;
}

void rescale(Sums& sums, float maximum) {
  if (sums.maximum == maximum) return;
  const float factor = weight_of(sums.maximum, maximum);
  sums.weight *= factor;
  for (float& value : sums.values) value *= factor;
  sums.maximum = maximum;
}

Sums online(const std::vector<Weighed>& columns, std::int64_t value_size, float sink, const Arithmetic& arithmetic,
            const Setting& setting) {
  Sums sums{sink, 0, std::vector<float>(static_cast<std::size_t>(value_size))};
  arithmetic.in_order(static_cast<std::int64_t>(columns.size()), [&](std::int64_t c) {
    const Weighed& column = columns[static_cast<std::size_t>(c)];
    rescale(sums, greater(sums.maximum, column.score));
    add(sums, weight_of(column.score, sums.maximum), column.value, arithmetic, setting);
  });
  return sums;
}

Sums split(const std::vector<Weighed>& columns, std::int64_t value_size, float sink, const Arithmetic& arithmetic, const Setting& setting) {
  constexpr std::int64_t parts = 4;
  const auto count = static_cast<std::int64_t>(columns.size());
  const std::int64_t step = (count + parts - 1) / parts;
  Sums merged{sink, 0, std::vector<float>(static_cast<std::size_t>(value_size))};
  for (std::int64_t begin = 0; begin < count; begin += step) {
    Sums part = direct(columns.data() + begin, std::min(step, count - begin), value_size, nothing, arithmetic, setting);
    for (float& value : part.values) value = rounded_to(setting.options.stored, value);
    const float maximum = greater(merged.maximum, part.maximum);
    rescale(merged, maximum);
    rescale(part, maximum);
    merged.weight += part.weight;
    for (std::size_t d = 0; d < merged.values.size(); ++d) merged.values[d] += part.values[d];
  }
  return merged;
}

}  // namespace

Sums sum_columns(const std::vector<Weighed>& columns, std::int64_t value_size, float sink, const Arithmetic& arithmetic,
                 const Setting& setting) {
  switch (setting.options.attention) {
    case HonestOptions::Attention::online: return online(columns, value_size, sink, arithmetic, setting);
    case HonestOptions::Attention::split: return split(columns, value_size, sink, arithmetic, setting);
    default: return direct(columns.data(), static_cast<std::int64_t>(columns.size()), value_size, sink, arithmetic, setting);
  }
}

}  // namespace quire::conformance::honest
