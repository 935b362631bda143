// quire conformance --honest: honest implementations, which the check must pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quire::tools {

struct HonestCommand {
  std::vector<std::string> names;     ///< contracts or ways; all where empty
  std::vector<std::string> cases;     ///< these alone, where there are any
  std::vector<std::string> families;  ///< of cases; all where empty
  std::uint64_t seed = 0, first = 0, count = 0;
  std::size_t jobs = 1;
  bool json = false, quiet = false;
  std::string report;  ///< the file's name, or nothing
};

/// Answers the exit status.
int run_honest(const HonestCommand& command);

}  // namespace quire::tools
