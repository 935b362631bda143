// Counting errors, naming laws.
#include "verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace quire::conformance {

namespace {

constexpr std::array<double, 6> limits = {0.01, 0.1, 0.25, 0.5, 0.75, 1};

}  // namespace

void ErrorDistribution::add(double ratio) {
  const auto place = static_cast<std::size_t>(std::lower_bound(limits.begin(), limits.end(), ratio) - limits.begin());
  ++counts[place];
  largest = std::max(largest, ratio);
}

void ErrorDistribution::add(const ErrorDistribution& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  largest = std::max(largest, other.largest);
}

std::int64_t ErrorDistribution::total() const { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

std::string Failure::laws() const { return also.empty() ? law : fmt::format("{}, with {}", law, fmt::join(also, ", ")); }

std::string Failure::message_of_element() const {
  return fmt::format("{} {} at {}: {} ({}): expected {}, got {}{}", op, tensor, place, what, laws(), expected, got, tolerance.empty() ? "" : ", tolerance " + tolerance);
}

}  // namespace quire::conformance
