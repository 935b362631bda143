// Time of a phase, added up.
#pragma once

#include <chrono>

namespace quire::replay {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(&seconds), begin_(Clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { stop(); }
  void stop() {
    if (seconds_ != nullptr) *seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count();
    seconds_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point begin_;
};

}  // namespace quire::replay
