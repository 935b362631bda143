// Comparing two results of one case: exact where the law is exact, one rounding apart elsewhere.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace quire_tests {

/// Empty when `got` (the library's result) agrees with `expected` (the literal implementation's), else the first difference.
/// Unspecified outputs (B7) are passed over.
std::string disagreement(const nlohmann::json& test_case, const nlohmann::json& expected, const nlohmann::json& got);

}  // namespace quire_tests
