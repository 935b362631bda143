// Running families of cases on a backend and counting what came out.
#pragma once

#include "calibration.h"
#include "judge/judge_call.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace quire::conformance {

/// A case as a line: "SEMANTICS:FAMILY:NUMBER". The same case on every machine.
struct CaseLine {
  std::string family;
  std::uint64_t number = 0;
  std::string text() const;
  /// Raises invalid_argument (`case`) for another form, an unknown family or other semantics.
  static CaseLine parse(const std::string& text);
};

/// The generator's families and those that take a part of them: drafts, packings, features.
const std::vector<std::string>& case_families();
/// The case of a line.
nlohmann::json case_of(const CaseLine& line);

struct RunOptions {
  const Backend* candidate = nullptr;
  const Backend* reference = nullptr;
  std::optional<std::int32_t> device;  ///< calls are copied to this device of the candidate, and back; else where it computes by itself (Placement)
  std::vector<std::string> families;  ///< all where empty
  std::vector<std::string> laws, ops, dtypes;  ///< only cases that have one of each list that is not empty
  std::uint64_t first = 0;            ///< number of the first case
  std::uint64_t count = 0;            ///< cases per family
  double seconds = 0;                 ///< 0: no limit
  bool stop_at_failure = false;
  std::size_t jobs = 1;               ///< cases that run at once, each on a thread of its own
  /// Called before a case runs, with the lines of all cases that run now, one per job: should the process end, one of the last ones did it.
  /// One call at a time, on the jobs' threads.
  std::function<void(const std::vector<CaseLine>& running)> before;
  std::function<bool()> interrupted;  ///< one call at a time, on the jobs' threads
  /// Asked of a failed case, on its job's thread; false: the failure does not count (a run on mutants asks whether their honest base passes).
  std::function<bool(const nlohmann::json& test_case, const CaseLine& line)> confirms;
  Judging::Classify classify;  ///< fills in the report's regimes
};

struct CaseFailure {
  std::string line;
  Failure failure;
};

struct FamilyCounts {
  std::int64_t cases = 0, calls = 0, failed = 0, unsupported = 0;
};

struct RunReport {
  std::map<std::string, FamilyCounts> families;
  std::map<std::string, std::int64_t> laws;                    ///< cases that exercised each law; calls that the candidate turned down exercised none
  std::map<std::string, ErrorDistribution> errors;             ///< by op
  RegimeTable regimes;                                         ///< by op and class, where calls are classified
  std::map<std::string, std::int64_t> unsupported;             ///< by reason
  std::vector<CaseFailure> failures;                           ///< the first hundred
  double seconds = 0;
  bool interrupted = false;

  void add(const RunReport& other);
  FamilyCounts total() const;
  /// Laws that no case exercised.
  std::vector<std::string> missing_laws() const;
};

/// Cases that run_cases runs of these families where no law, op or dtype is chosen.
std::uint64_t case_count(const std::vector<std::string>& families, std::uint64_t count);

/// The report is the same for any number of jobs, its time apart, unless time or an interrupt cuts the run short. What a job raises is raised here.
RunReport run_cases(const RunOptions& options);

/// One case. Answers the first failure, if any; adds to the report where one is given.
std::optional<Failure> run_case(const CaseLine& line, const nlohmann::json& test_case, Judging& judging, RunReport* report);

/// Whether a backend passes a case.
bool passes(const CaseLine& line, const nlohmann::json& test_case, const Backend& candidate, const Backend& reference);

}  // namespace quire::conformance
