// What a replay says at its end.
#pragma once

#include "engine.h"

#include <string>

namespace quire::replay {

struct Report {
  bool interrupted = false;
  double seconds = 0;       ///< of the whole run
  std::string backend;
  int threads = 0;
};

/// Mismatches that are listed one by one.
inline constexpr std::size_t most_listed = 20;

/// The summary, line by line: nothing in it depends on time, so that it is the same on any number of threads.
std::string summary(const Options& options, const Engine& engine, const Report& report);
/// Seconds per phase, tokens per second, memory.
std::string timing(const Engine& engine, const Report& report);
/// Both as one object.
std::string json_report(const Options& options, const Engine& engine, const Report& report);

}  // namespace quire::replay
