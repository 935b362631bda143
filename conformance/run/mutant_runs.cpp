// Running the suite on the bank of wrong backends.
#include "mutant_runs.h"

#include "honest/honest.h"
#include "mutants/mutants.h"
#include "runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace quire::conformance {

std::vector<std::string> mutant_names() {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants()) names.push_back(mutant.name);
  return names;
}

std::vector<MutantResult> run_mutants(const std::vector<std::string>& names, double seconds, std::uint64_t first, const std::function<bool()>& interrupted,
                                      const std::function<void(const MutantResult&)>& done) {
  const std::vector<std::string> known = mutant_names();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) reject("mutant", "\"" + name + "\"", fmt::format("{}", fmt::join(known, ", ")));
  }
  std::vector<MutantResult> results;
  for (const Mutant& mutant : mutants()) {
    if (!names.empty() && std::find(names.begin(), names.end(), mutant.name) == names.end()) continue;
    const Backend candidate(mutant.table, "(mutant)");
    RunOptions options;
    options.candidate = &candidate;
    options.reference = &backend("reference");
    options.first = first;
    options.count = std::numeric_limits<std::uint32_t>::max();
    options.seconds = seconds;
    options.stop_at_failure = true;
    options.interrupted = interrupted;
    // What an honest backend fails too is a false alarm and catches nothing.
    static const Backend honest(honest_backend(), "(honest)");
    options.confirms = [&](const nlohmann::json& test_case, const CaseLine& line) { return passes(line, test_case, honest, *options.reference); };
    const RunReport report = run_cases(options);
    if (report.interrupted && report.failures.empty()) break;  // it had not its time
    MutantResult result{mutant.name, mutant.mistake, !report.failures.empty(), {}, {}, {}, report.seconds, report.total().cases};
    if (result.caught) {
      result.law = report.failures.front().failure.law;
      result.line = report.failures.front().line;
      result.message = report.failures.front().failure.message;
    }
    done(result);
    results.push_back(std::move(result));
    if (report.interrupted) break;
  }
  return results;
}

}  // namespace quire::conformance
