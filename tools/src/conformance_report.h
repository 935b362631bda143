// Printing what a conformance run found, as text and as JSON.
#pragma once

#include "run/mutant_runs.h"
#include "run/runner.h"

#include <nlohmann/json.hpp>

namespace quire::tools {

/// What a run amounts to: `incomplete` says that a law was not exercised.
enum class Outcome { passed, failed, no_cases, incomplete, interrupted };

/// `is_partial`: parts were chosen, so that the laws of others are not asked for.
Outcome outcome_of(const conformance::RunReport& report, bool is_partial);
int exit_status(Outcome outcome);

/// How errors compare with tolerances, by op.
void print_errors(const std::map<std::string, conformance::ErrorDistribution>& errors);
void print_failures(const conformance::RunReport& report);
void print_report(const conformance::RunReport& report, const Backend& candidate, Outcome outcome);
nlohmann::json report_json(const conformance::RunReport& report, const Backend& candidate, Outcome outcome);
nlohmann::json mutants_json(const std::vector<conformance::MutantResult>& results);

}  // namespace quire::tools
