// One line on a terminal: how much of long work is done and how long the rest will take.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace quire::tools {

class Progress {
 public:
  /// Steps in all. Shows nothing where standard error is no terminal.
  Progress(std::uint64_t total, bool wanted);
  /// One step begins; its name is shown, since the last line on the screen says where a crash or a hang was.
  void step(const std::string& name);
  /// Takes the line off the screen before other output.
  void clear();

 private:
  std::uint64_t total_, done_ = 0;
  bool shows_, is_shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

/// "12 % of 1000000, 3 min left: NAME"; nothing of the time before there is something to judge it by.
std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds, const std::string& name);

}  // namespace quire::tools
