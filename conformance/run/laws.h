// Which laws a case exercises.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <vector>

namespace quire::conformance {

/// The laws that cases can exercise, in order. A13-A15 (values, structure, placement) show in no result of an op; core's tests hold them.
const std::vector<std::string>& all_laws();

/// The laws that a case or program of the case format exercises, by its op and the features of its fields. Calls that need one of the ABI's ops
/// in `without` exercise none.
std::set<std::string> laws_of(const nlohmann::json& test_case, const std::set<std::string>& without = {});

/// The ops of a case or program.
std::set<std::string> ops_of(const nlohmann::json& test_case);

/// Every dtype that a tensor of a case states; "f32" and "i64" for plain lists are not counted.
std::set<std::string> dtypes_of(const nlohmann::json& test_case);

}  // namespace quire::conformance
