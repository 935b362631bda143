// JSON whose numbers keep what a float64 can't: so that a literal is rounded once, straight into its dtype.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace quire::conformance {

/// Parses one JSON value. Unlike nlohmann's own parser it refuses an object that has a key twice, keeps the sign of "-0" (as -0.0), and keeps
/// the text of a number that a float64 rounds onto the middle between two values of a narrower type (as a binary value: `nearly` reads it).
/// Raises invalid_argument (`json`) with the place of the fault.
nlohmann::json parse_exact(std::string_view text);

/// The float64 of a number, plain or kept as text.
double number_of(const nlohmann::json& value);

/// A float64 that rounds into every type narrower than float64 as the number itself does: `number`, or its neighbour on the number's side
/// where float64 had rounded it.
double nearly(const nlohmann::json& value, double number);

}  // namespace quire::conformance
