// Splitting a text into its JSON values: one case, a list of cases, or JSON lines.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace quire::tools {

/// Hands each case of `text` over, in order; a top-level list is many cases. Stops when `each` answers false. Raises
/// invalid_argument (`case`) with the line for text that is not JSON, is nested deeper than 64 or holds no case; the cases before it have been
/// handed over by then.
void for_each_case(std::string_view text, const std::function<bool(const nlohmann::json&)>& each);

}  // namespace quire::tools
