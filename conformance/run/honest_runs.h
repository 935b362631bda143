// Calibration: honest implementations, which the suite must pass, each under its own contract.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibration.h"
#include "runner.h"

namespace quire::conformance {

struct HonestResult {
  std::string name;      ///< "chunked-64-logs-split-fma-reversed"
  std::string contract;  ///< "float32", "bf16"
  RunReport report;
};

/// The ways of computing: recurrence or chunks of 16, 64, 128 tokens, decays multiplied or from log sums; attention direct, online or in
/// pieces; fma; reversed sums; operands of products or stored intermediates in narrower formats.
std::vector<std::string> honest_names();
/// The contracts that they declare: "float32", "tf32", "half", "bf16" by what products' operands are rounded to, "bf16-stored" and so on by
/// what intermediates are.
std::vector<std::string> honest_contracts();

struct HonestRun {
  std::vector<std::string> names;     ///< ways or contracts; every way where none is named
  std::vector<std::string> families;  ///< of cases; all where empty
  std::uint64_t first = 0;            ///< number of the first case
  std::uint64_t count = 0;            ///< cases per family and way: others for each way
  std::vector<CaseLine> lines;        ///< these cases alone, where there are any
  std::size_t jobs = 1;               ///< cases that run at once; chosen lines run one at a time
  std::function<void(const std::vector<CaseLine>& running)> before;  ///< as RunOptions'
  std::function<bool()> interrupted;
  std::function<void(const HonestResult&)> done;  ///< called after each way
};

/// Cases of a whole run, those of the golden family included.
std::uint64_t honest_case_count(const HonestRun& run);

/// Runs the ways one after another. Raises invalid_argument (`honest`) for an unknown name.
std::vector<HonestResult> run_honest(const HonestRun& run);

}  // namespace quire::conformance
