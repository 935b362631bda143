// quire conformance: random cases on a backend, judged beside the reference.
#include "commands.h"
#include "terminal.h"
#include "interrupt.h"

#include "conformance_honest.h"
#include "conformance_report.h"
#include "run/honest_runs.h"
#include "run/laws.h"
#include "run/mutant_runs.h"
#include "run/runner.h"

#include "case/run_op.h"

#include <quire/registry.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

namespace quire::tools {

namespace {

using conformance::CaseLine;
using conformance::RunReport;

struct ConformanceOptions {
  std::string backend;
  std::vector<std::string> families, laws, ops, dtypes, cases, mutants;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  double seconds = 0;
  std::string level = "quick";
  bool list = false, json = false, quiet = false, all_mutants = false, honest = false;
  std::vector<std::string> honest_names;
  std::string report;
};

// Cases per family of a level: quick ends within a minute on two cores.
constexpr std::pair<std::string_view, std::uint64_t> levels[] = {{"quick", 1500}, {"full", 60000}};

// Seeds choose ranges of numbers that do not meet.
constexpr std::uint64_t numbers_per_seed = std::uint64_t{1} << 32;

void require_known(std::string_view option, const std::vector<std::string>& given, const std::vector<std::string>& known) {
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) == known.end()) reject(option, "\"" + name + "\"", fmt::format("{}", fmt::join(known, ", ")));
  }
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (std::int32_t d = 0; d < QUIRE_DTYPE_COUNT; ++d) names.emplace_back(name(static_cast<DType>(d)));
  return names;
}

std::uint64_t count_of(const ConformanceOptions& options) {
  for (const auto& [level, count] : levels) {
    if (options.level == level) return options.count > 0 ? options.count : count;
  }
  reject("level", "\"" + options.level + "\"", "quick or full");
}

void print_list() {
  fmt::print("families: {}\nlaws: {}\nops: {}\ndtypes: {}\nmutants: {}\nhonest contracts: {}\nhonest ways: {}\n",
             fmt::join(conformance::case_families(), " "), fmt::join(conformance::all_laws(), " "), fmt::join(conformance::op_names(), " "),
             fmt::join(dtype_names(), " "), fmt::join(conformance::mutant_names(), " "), fmt::join(conformance::honest_contracts(), " "),
             fmt::join(conformance::honest_names(), " "));
}

// The line that replays a case, before it runs: the last one says where a crash or a hang was.
void announce(const CaseLine& line) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) {
    complain("\r\033[K--case {}", line.text());
  } else {
    complain("--case {}\n", line.text());
  }
}

int run_mutants(const ConformanceOptions& options) {
  const double seconds = options.seconds > 0 ? options.seconds : 30;
  const auto results = conformance::run_mutants(options.mutants, seconds, options.seed * numbers_per_seed, interrupted, [&](const conformance::MutantResult& result) {
    if (options.json) return;
    fmt::print("{:<10} {:<34} {}\n", result.caught ? fmt::format("{:.2f} s", result.seconds) : "NOT CAUGHT", result.name,
               result.caught ? fmt::format("{}  --case {}", result.law, result.line) : result.mistake);
    std::fflush(stdout);
  });
  const auto caught = std::count_if(results.begin(), results.end(), [](const auto& result) { return result.caught; });
  if (options.json) {
    fmt::print("{}\n", mutants_json(results).dump(2));
  } else {
    fmt::print("{} of {} mutants caught, each within {} s allowed\n", caught, results.size(), seconds);
  }
  if (interrupted()) {
    complain("quire conformance: interrupted\n");
    return interrupted_exit;
  }
  return !results.empty() && caught == static_cast<std::ptrdiff_t>(results.size()) ? 0 : 1;
}

int run_lines(const ConformanceOptions& options, const Backend& candidate, const Backend& reference) {
  RunReport report;
  conformance::Judging judging(candidate, reference);
  for (const std::string& text : options.cases) {
    const CaseLine line = CaseLine::parse(text);
    const nlohmann::json test_case = conformance::case_of(line);
    if (!options.quiet) announce(line);
    if (!options.json) fmt::print("{}\n", test_case.dump());
    run_case(line, test_case, judging, &report);
  }
  print_failures(report);
  return report.total().failed == 0 ? 0 : 1;
}

int run_conformance(const ConformanceOptions& options) {
  if (options.list) {
    print_list();
    return 0;
  }
  require_known("family", options.families, conformance::case_families());
  require_known("law", options.laws, conformance::all_laws());
  require_known("op", options.ops, conformance::op_names());
  require_known("dtype", options.dtypes, dtype_names());
  allowed_bytes();  // a wrong QUIRE_MAX_MEMORY is no fault of the backend's
  const bool mutants = options.all_mutants || !options.mutants.empty();
  if ((mutants && (!options.cases.empty() || options.honest)) || ((mutants || options.honest) && !options.backend.empty())) {
    reject(mutants ? "mutants" : "honest", mutants ? "together with --backend, --case or --honest" : "together with --backend",
           "one of --mutants, --honest, or a run on a backend");
  }
  if (options.honest && (!options.laws.empty() || !options.ops.empty() || !options.dtypes.empty() || options.seconds > 0)) {
    reject("honest", "together with --law, --op, --dtype or --time", "--family, --seed, --count, --level, --case, --report, --json, --quiet");
  }
  if (!options.report.empty() && !options.honest) reject("report", "without --honest", "--honest --report FILE");
  watch_interrupts();
  if (options.all_mutants || !options.mutants.empty()) return run_mutants(options);

  if (options.honest) {
    // There are many ways: a level's count is shared, so that it takes minutes.
    const std::uint64_t count = count_of(options), shared = options.count > 0 ? count : count / 3;
    const HonestCommand honest{options.honest_names, options.cases, options.families, options.seed,  options.seed * numbers_per_seed,
                               shared,               options.json,  options.quiet,    options.report};
    return run_honest(honest);
  }

  const Backend& candidate = options.backend.empty() ? default_backend() : backend(options.backend);
  const Backend& reference = backend("reference");
  if (!options.cases.empty()) return run_lines(options, candidate, reference);

  conformance::RunOptions run;
  run.candidate = &candidate;
  run.reference = &reference;
  run.families = options.families;
  run.laws = options.laws;
  run.ops = options.ops;
  run.dtypes = options.dtypes;
  run.first = options.seed * numbers_per_seed;
  run.count = count_of(options);
  run.seconds = options.seconds;
  if (!options.quiet) run.before = announce;
  run.interrupted = interrupted;
  const RunReport report = run_cases(run);
  if (!options.quiet && isatty(STDERR_FILENO) == 1) complain("\r\033[K");

  // A run of chosen families, laws, ops or dtypes is not asked for the others.
  const bool is_partial = !options.families.empty() || !options.laws.empty() || !options.ops.empty() || !options.dtypes.empty();
  const Outcome outcome = outcome_of(report, is_partial);
  if (options.json) {
    fmt::print("{}\n", report_json(report, candidate, outcome).dump(2));
  } else {
    print_report(report, candidate, outcome);
  }
  return exit_status(outcome);
}

}  // namespace

void add_conformance(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("conformance", "Check a backend: random cases of every law, judged beside the reference");
  const auto options = std::make_shared<ConformanceOptions>();
  command->add_option("--backend", options->backend, "The backend under test (the default one)");
  command->add_option("--family", options->families, "Only these families of cases")->delimiter(',');
  command->add_option("--law", options->laws, "Only cases that exercise one of these laws")->delimiter(',');
  command->add_option("--op", options->ops, "Only cases with one of these ops")->delimiter(',');
  command->add_option("--dtype", options->dtypes, "Only cases with a tensor of one of these dtypes")->delimiter(',');
  command->add_option("--case", options->cases, "Replay this case, SEMANTICS:FAMILY:NUMBER, and print it");
  command->add_option("--seed", options->seed, "Another range of cases")->check([](const std::string& text) { return whole_number_fault(text, 0, 0xFFFFFFFF); });
  command->add_option("--count", options->count, "Cases per family (the level's; with --honest, per family and way)")->check([](const std::string& text) { return whole_number_fault(text, 1, numbers_per_seed); });
  command->add_option("--time", options->seconds, "Seconds after which to stop; with --mutants, per mutant (30)")->check(positive_number_fault);
  command->add_option("--level", options->level, "quick (within a minute) or full");
  command->add_flag("--list", options->list, "Print families, laws, ops, dtypes, mutants and honest implementations");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->add_flag("--quiet", options->quiet, "Do not print each case's line before it runs");
  command->add_flag("--mutants", options->all_mutants, "Check the check: run it on each wrong backend of the bank, which it must catch");
  CLI::Option* honest =
      command
          ->add_option(
              "--honest", options->honest_names,
              "Check the check: run it on honest implementations, which it must pass: all, or those of these contracts or ways (--list)")
          ->delimiter(',')
          ->expected(0, -1);
  command->add_option("--report", options->report,
                      "With --honest: write errors over tolerances by op, contract and regime to this file, NAME.md or NAME.json");
  command->add_option("--mutant", options->mutants, "The same for these mutants only")->delimiter(',');
  command->footer("Exit status: 0 passed, 1 failed (or no case ran), 2 options that can't be used, 3 incomplete (a law was not exercised), 130 interrupted.");
  command->callback([options, honest, &exit_code] {
    options->honest = honest->count() > 0;
    std::erase(options->honest_names, "");
    try {
      exit_code = run_conformance(*options);
    } catch (const Error& error) {
      complain("quire conformance: {}\n", error.what());
      exit_code = 2;
    }
  });
}

}  // namespace quire::tools
