// Replaying a trace: the run as a whole.
#pragma once

#include "options.h"
#include "report.h"
#include "trace.h"

#include <functional>
#include <memory>

namespace quire::replay {

/// Fills in defaults that hang on the trace (page size, memory) and checks everything that can be checked before the run. Raises
/// invalid_argument naming the option.
void settle(Options& options, const Trace& trace);

struct Watch {
  std::function<bool()> interrupted;
  std::function<void(const Counts&, double seconds)> progress;  ///< after each step
};

struct Replayed {
  std::unique_ptr<Engine> engine;
  Report report;
};

/// Runs the engine over the trace. `options` and `trace` must outlive the result.
Replayed replay(const Options& options, const Trace& trace, const Backend& backend, const Watch& watch = {});

/// 0: no mismatch; 1: mismatches; 130: interrupted without one.
int exit_status(const Replayed& replayed);

}  // namespace quire::replay
