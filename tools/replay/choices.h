// What the engine leaves to chance, each from a counter of its own.
#pragma once

#include "philox.h"

#include <cstdint>

namespace quire::replay {

enum class Choice : std::uint32_t { verify, drafts, piece, nodes, parent, guess };

/// A number in [0, 1) that depends on the seed, what is chosen, and two numbers of place.
inline double chance(std::uint64_t seed, Choice choice, std::int64_t first, std::int64_t second = 0) {
  const auto words = philox({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first >> 32) ^ (static_cast<std::uint32_t>(choice) << 24),
                             static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(second >> 32)},
                            seed ^ 0x7265706C61790000U);  // other words than the activations' of the same seed
  return words[0] * 0x1p-32;
}

/// A whole number in [0, count).
inline std::int64_t chosen(std::uint64_t seed, Choice choice, std::int64_t count, std::int64_t first, std::int64_t second = 0) {
  return static_cast<std::int64_t>(chance(seed, choice, first, second) * static_cast<double>(count));
}

}  // namespace quire::replay
