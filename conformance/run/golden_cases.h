// The hand-made golden cases as a family: their expectations are exact, whatever the backend.
#pragma once

#include <quire/registry.h>

#include <nlohmann/json.hpp>

#include <string_view>
#include <vector>

namespace quire::conformance {

/// The files of conformance/golden, without the random ones; made by the build.
const std::vector<std::string_view>& golden_texts();

/// All their cases, in order.
const std::vector<nlohmann::json>& golden_cases();

/// Whether a backend can be held to what a case expects: float32 arithmetic can't give what some do.
bool is_within_reach(const nlohmann::json& golden_case, const Backend& backend);

}  // namespace quire::conformance
