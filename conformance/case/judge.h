// Judging a result against a case's `expect` and `tolerance`.
#pragma once

#include "run_op.h"

#include <optional>
#include <string>

namespace quire::conformance {

/// What a call came to.
struct Outcome {
  Outputs outputs;
  std::optional<Error> error;
};

/// Empty when the outcome is as expected, else the first difference. Raises invalid_argument (`expect`, `tolerance`) where they can't be read.
/// `tolerance` is a number, or an object of numbers by output; without one every element must be equal, the sign of zero too, NaN to NaN.
std::string difference(const Outcome& outcome, const nlohmann::json& expect, const nlohmann::json* tolerance);

}  // namespace quire::conformance
