// Softmax over a token's columns in float32, in the three ways that kernels compute it (laws D1-D4).
#pragma once

#include "arithmetic.h"

#include <vector>

namespace quire::conformance::honest {

/// One column's score and value; a null value is a hole's (D2).
struct Weighed {
  float score;
  const float* value;
};

/// Sums of exp(score - maximum), alone and with the values.
struct Sums {
  float maximum;
  float weight = 0;
  std::vector<float> values;
};

/// The sums over all columns by the way that the options name. `sink` is -inf where there is none; only its maximum is taken in here.
Sums sum_columns(const std::vector<Weighed>& columns, std::int64_t value_size, float sink, const Arithmetic& arithmetic,
                 const Setting& setting);

}  // namespace quire::conformance::honest
