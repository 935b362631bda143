// Calibration: honest float32 implementations, which the suite must pass, each under its own contract.
#pragma once

#include "runner.h"

#include <functional>
#include <string>
#include <vector>

namespace quire::conformance {

struct HonestResult {
  std::string name;  ///< "chunked 64, log sums, split, fma"
  RunReport report;
};

/// Every way of computing in float32 (recurrence or chunks of 16, 64, 128 tokens, decays multiplied or from log sums; attention direct, online or in
/// pieces; fma; reversed sums), `count` cases per family each from number `first` on, `jobs` at once.
std::vector<HonestResult> run_honest(std::uint64_t first, std::uint64_t count, std::size_t jobs, const std::function<bool()>& interrupted,
                                     const std::function<void(const HonestResult&)>& done);

}  // namespace quire::conformance
