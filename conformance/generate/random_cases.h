// Random small cases: the same case for a family and a number on every machine, in any order.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace quire_tests {

/// The case `number` of `family`: one object of the case format, or a program (an object with
/// `steps`). Every family but `bad` holds only calls that the laws accept; a case of `bad` breaks
/// exactly one thing, and its `id` begins with the name of the argument that the error must name,
/// then ": " and the reason. Features are laid out over the numbers so that in each run of 361
/// numbers from a multiple of 361 every pair of features meets. Raises std::invalid_argument for
/// an unknown family.
nlohmann::json random_case(std::string_view family, std::uint64_t number);

/// The names that `random_case` takes.
const std::vector<std::string>& families();

}  // namespace quire_tests
