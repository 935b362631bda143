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
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>

namespace quire::tools {

namespace {

using conformance::CaseLine;
using conformance::RunReport;

constexpr std::size_t most_jobs = 64;

struct ConformanceOptions {
  std::string backend;
  std::int32_t device = -1;
  std::vector<std::string> families, laws, ops, dtypes, cases, mutants;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  std::size_t jobs = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most_jobs);
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

void print_list(bool as_json) {
  const std::pair<const char*, std::vector<std::string>> lists[] = {{"families", conformance::case_families()},
                                                                    {"laws", conformance::all_laws()},
                                                                    {"ops", conformance::op_names()},
                                                                    {"dtypes", dtype_names()},
                                                                    {"mutants", conformance::mutant_names()},
                                                                    {"honest contracts", conformance::honest_contracts()},
                                                                    {"honest ways", conformance::honest_names()}};
  nlohmann::ordered_json object;
  for (const auto& [title, names] : lists) {
    if (as_json) object[title] = names;
    else fmt::print("{}: {}\n", title, fmt::join(names, " "));
  }
  if (as_json) fmt::print("{}\n", object.dump(2));
}

// The progress line: on a terminal it is written over, and may be several rows long.
class Progress {
 public:
  // What replays the cases that run now, before the newest of them runs: the last line says where a crash or a hang was.
  void show(const std::vector<CaseLine>& running) {
    std::string text;
    for (const CaseLine& line : running) text += (text.empty() ? "--case " : ",") + line.text();
    if (!is_terminal_) return complain("{}\n", text);
    complain("{}{}", erasing(), text);
    winsize size{};
    const std::size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    rows_above_ = (text.size() - 1) / columns;
  }
  void erase() {
    if (is_terminal_) complain("{}", erasing());
    rows_above_ = 0;
  }

 private:
  std::string erasing() const { return rows_above_ == 0 ? "\r\033[J" : fmt::format("\r\033[{}A\033[J", rows_above_); }

  const bool is_terminal_ = isatty(STDERR_FILENO) == 1;
  std::size_t rows_above_ = 0;
};

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

std::optional<std::int32_t> device_of(const ConformanceOptions& options) {
  return options.device < 0 ? std::nullopt : std::optional(options.device);
}

int run_lines(const ConformanceOptions& options, const Backend& candidate, const Backend& reference) {
  RunReport report;
  Progress progress;
  conformance::Judging judging(candidate, reference, device_of(options));
  for (const std::string& text : options.cases) {
    const CaseLine line = CaseLine::parse(text);
    const nlohmann::json test_case = conformance::case_of(line);
    if (!options.quiet) progress.show({line});
    if (!options.json) fmt::print("{}\n", test_case.dump());
    run_case(line, test_case, judging, &report);
  }
  print_failures(report);
  return report.total().failed == 0 ? 0 : 1;
}

int run_conformance(const ConformanceOptions& options) {
  if (options.list) {
    print_list(options.json);
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
  // Jobs are threads enough, unless the user says otherwise. Whatever their number: the report names the reference's threads.
  setenv("QUIRE_THREADS", "1", 0);
  watch_interrupts();
  if (options.all_mutants || !options.mutants.empty()) return run_mutants(options);

  if (options.honest) {
    // There are many ways: a level's count is shared, so that it takes minutes.
    const std::uint64_t count = count_of(options), shared = options.count > 0 ? count : count / 3;
    const HonestCommand honest{options.honest_names, options.cases, options.families, options.seed,  options.seed * numbers_per_seed,
                               shared, options.jobs, options.json, options.quiet, options.report};
    return run_honest(honest);
  }

  const Backend& candidate = options.backend.empty() ? default_backend() : backend(options.backend);
  const Backend& reference = backend("reference");
  if (!options.cases.empty()) return run_lines(options, candidate, reference);

  conformance::RunOptions run;
  run.candidate = &candidate;
  run.reference = &reference;
  run.device = device_of(options);
  (void)conformance::Placement(candidate, run.device);  // a device that it has
  run.families = options.families;
  run.laws = options.laws;
  run.ops = options.ops;
  run.dtypes = options.dtypes;
  run.first = options.seed * numbers_per_seed;
  run.count = count_of(options);
  run.jobs = options.jobs;
  run.seconds = options.seconds;
  Progress progress;
  if (!options.quiet) run.before = [&](const std::vector<CaseLine>& running) { progress.show(running); };
  run.interrupted = interrupted;
  const RunReport report = run_cases(run);
  if (!options.quiet) progress.erase();

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
  command->add_option("--backend", options->backend, "The backend under test (the default one)")->check(empty_fault);
  command->add_option("--device", options->device, "The device of the backend, by its number, that calls are copied to and back (none where the backend reads the host's memory, else 0)")
      ->check([](const std::string& text) { return whole_number_fault(text, 0, 0x7FFFFFFF); });
  command->add_option("--family", options->families, "Only these families of cases")->delimiter(',');
  command->add_option("--law", options->laws, "Only cases that exercise one of these laws")->delimiter(',');
  command->add_option("--op", options->ops, "Only cases with one of these ops")->delimiter(',');
  command->add_option("--dtype", options->dtypes, "Only cases with a tensor of one of these dtypes")->delimiter(',');
  command->add_option("--case", options->cases, "Replay these cases, SEMANTICS:FAMILY:NUMBER, and print them")->delimiter(',');
  command->add_option("--seed", options->seed, "Another range of cases")->check([](const std::string& text) { return whole_number_fault(text, 0, 0xFFFFFFFF); });
  command->add_option("--count", options->count, "Cases per family (the level's; with --honest, per family and way)")->check([](const std::string& text) { return whole_number_fault(text, 1, numbers_per_seed); });
  command->add_option("--jobs", options->jobs, "Cases that run at once, 1 to 64 (as many as the machine has cores); --mutants and --case run one at a time")
      ->check([](const std::string& text) { return whole_number_fault(text, 1, most_jobs); });
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
              "Check the check: run it on honest implementations, which it must pass: every one, or with =NAMES those of these contracts or ways (--list)")
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
