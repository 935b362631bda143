// The golden cases as a family.
#pragma once

#include <quire/registry.h>

#include <nlohmann/json.hpp>

#include <string_view>
#include <vector>

namespace quire::conformance {

/// The files of conformance/golden, the hand-made ones and the random ones; made by the build.
const std::vector<std::string_view>& golden_texts();
const std::vector<std::string_view>& random_golden_texts();

/// All their cases, in order, the hand-made ones first.
const std::vector<nlohmann::json>& golden_cases();

/// Whether a backend is held to what a golden case expects, bit for bit. Hand-made cases expect exact numbers, but float32 arithmetic can't give
/// what some do; random ones expect float64's results. The others are judged beside the reference, as any case is.
bool is_literal(std::size_t number, const Backend& backend);

}  // namespace quire::conformance
