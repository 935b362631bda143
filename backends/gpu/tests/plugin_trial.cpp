// gpu_plugin_trial PLUGIN COUNT FIRST [FAMILY...]: runs cases of the conformance suite on one plugin, loaded by its path, then
// the layouts beside them, and says what failed first.
// Ends with 0 where every case passed, 3 where one failed, 2 where nothing could be run. QUIRE_SIMT_* set the emulator.
#include "layouts.h"
#include "run/runner.h"

#include <quire/registry.h>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace {

constexpr double most_seconds = 120;

int run(const char* path, std::uint64_t count, std::uint64_t first, std::vector<std::string> families) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fmt::print(stderr, "{}\n", dlerror());
    return 2;
  }
  const auto query = reinterpret_cast<quire_backend_query_fn>(dlsym(library, QUIRE_BACKEND_QUERY_SYMBOL));
  const quire_host host{sizeof host, QUIRE_ABI_VERSION, "0.1.0"};
  const char* reason = "no quire_backend_query in it";
  const quire_backend_table* table = query != nullptr ? query(&host, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION, &reason) : nullptr;
  if (table == nullptr) {
    fmt::print(stderr, "{}: {}\n", path, reason);
    return 2;
  }
  const quire::Backend candidate(table, path);
  quire::conformance::RunOptions options;
  options.candidate = &candidate;
  options.reference = &quire::backend("reference");
  options.families = std::move(families);
  options.first = first;
  options.count = count;
  options.seconds = most_seconds;
  options.stop_at_failure = true;
  const quire::conformance::RunReport report = quire::conformance::run_cases(options);
  for (const auto& [why, calls] : report.unsupported) fmt::print("unsupported: {} calls: {}\n", calls, why);
  for (const quire::conformance::CaseFailure& failure : report.failures) fmt::print("{}: {}\n", failure.line, failure.failure.message);
  const quire::conformance::FamilyCounts total = report.total();
  fmt::print("{}: {} cases, {} calls, {} failed, {} unsupported, {:.1f} s{}\n", candidate.description(), total.cases, total.calls,
             total.failed, total.unsupported, report.seconds, report.interrupted ? ", cut short" : "");
  if (total.failed > 0) return 3;
  const quire::gpu::test::LayoutReport layouts = quire::gpu::test::judge_layouts(candidate, true);
  for (const std::string& failure : layouts.failures) fmt::print("{}\n", failure);
  fmt::print("layouts: {} calls, {} failed\n", layouts.calls, layouts.failures.size());
  if (!layouts.failures.empty()) return 3;
  return total.calls > 0 && layouts.calls > 0 ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "gpu_plugin_trial PLUGIN COUNT FIRST [FAMILY...]\n");
    return 2;
  }
  try {
    return run(argv[1], std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10), {argv + 4, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
