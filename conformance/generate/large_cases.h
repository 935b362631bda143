// Families of large cases: many elements (wide), and offsets past 2^31 elements (far).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace quire_tests {

/// Tens of thousands of elements: one wrong element in a million shows within seconds.
nlohmann::json wide_case(std::uint64_t number);

/// Pools of more than 2^31 elements, reserved and touched in a few rows (the case format's `rows`), addressed on both sides of 2^31 and at
/// the rows where a 32-bit offset would land.
nlohmann::json far_case(std::uint64_t number);

}  // namespace quire_tests
