// Running the suite on the bank of wrong backends: it must catch each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quire::conformance {

struct MutantResult {
  std::string name, mistake;
  bool caught = false;
  std::string law, line, message;  ///< of the first failure
  double seconds = 0;
  std::int64_t cases = 0;
};

std::vector<std::string> mutant_names();

/// Each named mutant (all where none is named) gets `seconds`. Raises invalid_argument (`mutant`) for an unknown name.
std::vector<MutantResult> run_mutants(const std::vector<std::string>& names, double seconds, std::uint64_t first, const std::function<bool()>& interrupted,
                                      const std::function<void(const MutantResult&)>& done);

}  // namespace quire::conformance
