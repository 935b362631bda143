// The run: steps until nothing is left, or until somebody interrupts.
#include "replay.h"

#include "parallel.h"
#include "stopwatch.h"

#include <quire/error.h>
#include <quire/tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace quire::replay {

namespace {

std::string mebibytes(std::int64_t bytes) { return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20); }

}  // namespace

void settle(Options& options, const Trace& trace) {
  if (options.page_size == 0) options.page_size = trace.block_size;
  if (options.page_size % 64 != 0) reject("--page-size", fmt::format("{}", options.page_size), "a multiple of 64 (E13)");
  if (options.max_memory == 0) options.max_memory = allowed_bytes();
  if (options.save_step && options.save_request) reject("--save-step", "together with --save-request", "one of them");
  if (options.save.empty() && (options.save_step || options.save_request)) reject("--save", "nothing", "a file for the step or request");
  if (!options.save.empty() && !options.save_step && !options.save_request) options.save_step = 0;
  if (options.save_request && std::none_of(trace.requests.begin(), trace.requests.end(), [&](const Request& r) { return r.number == *options.save_request; })) {
    reject("--save-request", fmt::format("{}", *options.save_request), "a request of this run, by its place in the trace");
  }
  const std::int64_t longest = trace.longest(), pages = (longest + options.page_size - 1) / options.page_size + (options.draft > 0 ? most_draft_nodes : 0);
  if (options.pages < pages) {
    reject("--pages", fmt::format("{}", options.pages), fmt::format("at least {} of {} tokens, for the longest request and its drafts", pages, options.page_size));
  }
  const std::int64_t lanes = std::min<std::int64_t>(options.lanes, static_cast<std::int64_t>(trace.requests.size()));
  const std::int64_t fixed = Layers::bytes(options.pages, options.page_size, options.layers) + count_elements(Shape{8, lanes, longest + longest / options.page_size + 1}, "--lanes") +
                             count_elements(Shape{8, options.pages, options.page_size}, "--pages");
  const std::int64_t most = fixed + (options.verify > 0 ? outputs_bytes(longest, options.layers) + verify_bytes(longest, options.page_size) : 0);
  if (most > options.max_memory) {
    reject("--max-memory", mebibytes(options.max_memory),
           fmt::format("at least {} for {} pages, {} lanes{}; or fewer of them", mebibytes(most), options.pages, lanes,
                       options.verify > 0 ? fmt::format(" and the verification of {} tokens", longest) : std::string()));
  }
}

Replayed replay(const Options& options, const Trace& trace, const Backend& backend, const Watch& watch) {
  Replayed replayed;
  replayed.report.backend = backend.name();
  replayed.report.threads = reference::thread_count();
  {
    const Stopwatch running(replayed.report.seconds);
    replayed.engine = std::make_unique<Engine>(options, trace, backend);
    const auto begin = std::chrono::steady_clock::now();
    while (!replayed.engine->is_done() && !replayed.engine->is_broken()) {
      if (watch.interrupted && watch.interrupted()) {
        replayed.report.interrupted = true;
        break;
      }
      replayed.engine->round();
      if (watch.progress) watch.progress(replayed.engine->counts(), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    replayed.engine->finish();
  }
  return replayed;
}

int exit_status(const Replayed& replayed) {
  if (!replayed.engine->verified().mismatches.empty()) return 1;
  return replayed.report.interrupted ? 130 : 0;
}

}  // namespace quire::replay
