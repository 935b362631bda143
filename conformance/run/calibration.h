// Errors over tolerances by op and regime: how well derived tolerances fit.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "judge/verdict.h"

namespace quire::conformance {

/// The calls of one regime and their errors.
struct RegimeErrors {
  std::int64_t calls = 0;
  ErrorDistribution all;      ///< every element that has a tolerance
  ErrorDistribution shares;  ///< of the model's reach, the final rounding apart

  void add(const RegimeErrors& other);
};

/// By op, then by class ("decay: strong"); "all" is every call of the op.
using RegimeTable = std::map<std::string, std::map<std::string, RegimeErrors>>;

/// Counts a call that was classified; one of no class counts nowhere.
void add_call(RegimeTable& table, const CallVerdict& verdict);
void add_table(RegimeTable& table, const RegimeTable& other);

}  // namespace quire::conformance
