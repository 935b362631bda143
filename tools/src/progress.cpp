// Progress on a terminal.
#include "progress.h"

#include <unistd.h>

#include <cmath>

#include "terminal.h"

namespace quire::tools {

std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds, const std::string& name) {
  constexpr double least = 1;  // seconds before an estimate is worth showing
  if (total == 0) return name;
  std::string text = fmt::format("{} % of {}", done * 100 / total, total);
  if (seconds >= least && done > 0) {
    const double left = seconds / static_cast<double>(done) * static_cast<double>(total > done ? total - done : 0);
    text += left < 60 ? fmt::format(", {:.0f} s left", std::ceil(left)) : fmt::format(", {:.0f} min left", std::ceil(left / 60));
  }
  return text + ": " + name;
}

Progress::Progress(std::uint64_t total, bool wanted)
    : total_(total), shows_(wanted && isatty(STDERR_FILENO) == 1), start_(std::chrono::steady_clock::now()) {}

void Progress::step(const std::string& name) {
  const std::uint64_t done = done_++;
  if (!shows_) return;
  const auto now = std::chrono::steady_clock::now();
  is_shown_ = true;
  complain("\r\033[K{}", progress_text(done, total_, std::chrono::duration<double>(now - start_).count(), name));
}

void Progress::clear() {
  if (is_shown_) complain("\r\033[K");
  is_shown_ = false;
}

}  // namespace quire::tools
