// Runs many small helper processes at once, each with a time limit, and keeps what they say.
#pragma once

#include <string>
#include <vector>

namespace quire::detail {

struct HelperRun {
  enum class End { exited, signalled, timed_out, not_started, unknown };
  End end = End::not_started;
  int number = 0;        ///< exit status, signal, or errno of a start that failed
  std::string findings;  ///< what came on file descriptor 3
  std::string said;      ///< the telling line of its standard error, mostly the last
};

/// One process per command (a program's path and its arguments; no shell), at most `at_once` at a time. Standard input and output are
/// /dev/null. Each leads a process group of its own, of which nothing is left at the end. Reads nothing global but the environment.
std::vector<HelperRun> run_helpers(const std::vector<std::vector<std::string>>& commands, double seconds, std::size_t at_once);

}  // namespace quire::detail
