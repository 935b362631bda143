// Printing what a conformance run found.
#include "conformance_report.h"

#include "interrupt.h"
#include "run/laws.h"

#include <fmt/format.h>

namespace quire::tools {

using conformance::CaseFailure;
using conformance::ErrorDistribution;
using conformance::RunReport;
using nlohmann::json;

namespace {

constexpr std::string_view names[] = {"passed", "failed", "no cases", "incomplete", "interrupted"};
constexpr std::string_view bounds[] = {"<=0.01", "<=0.1", "<=0.25", "<=0.5", "<=0.75", "<=1", ">1"};

std::string_view name_of(Outcome outcome) { return names[static_cast<std::size_t>(outcome)]; }

}  // namespace

Outcome outcome_of(const RunReport& report, bool is_partial) {
  if (report.interrupted) return Outcome::interrupted;
  if (report.total().failed > 0) return Outcome::failed;
  if (report.total().cases == 0) return Outcome::no_cases;
  return !is_partial && !report.missing_laws().empty() ? Outcome::incomplete : Outcome::passed;
}

int exit_status(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed: return 0;
    case Outcome::failed:
    case Outcome::no_cases: return 1;
    case Outcome::incomplete: return 3;
    case Outcome::interrupted: return interrupted_exit;
  }
  return 1;
}

void print_failures(const RunReport& report) {
  for (const CaseFailure& failure : report.failures) {
    fmt::print("FAILED {}\n       replay: quire conformance --case {}\n", failure.failure.message, failure.line);
  }
}

void print_errors(const std::map<std::string, ErrorDistribution>& errors) {
  fmt::print("error over tolerance, elements\n{:<20}", "op");
  for (const std::string_view bound : bounds) fmt::print(" {:>10}", bound);
  fmt::print("   largest\n");
  for (const auto& [op, distribution] : errors) {
    fmt::print("{:<20}", op);
    for (const std::int64_t count : distribution.counts) fmt::print(" {:>10}", count);
    fmt::print("   {:.3f}\n", distribution.largest);
  }
}

void print_report(const RunReport& report, const Backend& candidate, Outcome outcome) {
  fmt::print("backend {} {}: {}\n", candidate.name(), candidate.version(), candidate.description());
  fmt::print("{:<14} {:>8} {:>8} {:>8} {:>12}\n", "family", "cases", "calls", "failed", "unsupported");
  for (const auto& [family, counts] : report.families) {
    fmt::print("{:<14} {:>8} {:>8} {:>8} {:>12}\n", family, counts.cases, counts.calls, counts.failed, counts.unsupported);
  }
  fmt::print("\nlaws, cases that exercised each:");
  std::size_t column = 0;
  for (const std::string& law : conformance::all_laws()) {
    const auto found = report.laws.find(law);
    fmt::print("{}{:>5} {:<7}", column++ % 8 == 0 ? "\n" : "", law, found == report.laws.end() ? 0 : found->second);
  }
  fmt::print("\n\n");
  print_errors(report.errors);
  for (const auto& [reason, count] : report.unsupported) fmt::print("unsupported {} times: {}\n", count, reason);
  fmt::print("\n");
  print_failures(report);
  const auto total = report.total();
  if (total.failed > static_cast<std::int64_t>(report.failures.size())) {
    fmt::print("... and {} failed cases more\n", total.failed - static_cast<std::int64_t>(report.failures.size()));
  }
  if (outcome == Outcome::incomplete) fmt::print("not exercised: {}\n", fmt::join(report.missing_laws(), " "));
  fmt::print("{}: {} cases, {} calls, {} failed, {} unsupported, {:.1f} s, {:.0f} cases/s\n", name_of(outcome), total.cases, total.calls, total.failed, total.unsupported,
             report.seconds, report.seconds > 0 ? static_cast<double>(total.cases) / report.seconds : 0);
}

json report_json(const RunReport& report, const Backend& candidate, Outcome outcome) {
  const auto total = report.total();
  json result{{"backend", candidate.name()}, {"outcome", name_of(outcome)},    {"cases", total.cases},      {"calls", total.calls},
              {"failed", total.failed},      {"unsupported", total.unsupported}, {"seconds", report.seconds}, {"laws", json::object()}};
  for (const auto& [family, counts] : report.families) {
    result["families"][family] = {{"cases", counts.cases}, {"calls", counts.calls}, {"failed", counts.failed}, {"unsupported", counts.unsupported}};
  }
  for (const std::string& law : conformance::all_laws()) {
    const auto found = report.laws.find(law);
    result["laws"][law] = found == report.laws.end() ? 0 : found->second;
  }
  result["not_exercised"] = report.missing_laws();
  for (const auto& [op, errors] : report.errors) {
    for (std::size_t i = 0; i < errors.counts.size(); ++i) result["errors"][op][std::string(bounds[i])] = errors.counts[i];
    result["errors"][op]["largest"] = errors.largest;
  }
  result["failures"] = json::array();
  for (const CaseFailure& failure : report.failures) {
    const auto& f = failure.failure;
    result["failures"].push_back({{"case", failure.line}, {"op", f.op}, {"law", f.law}, {"also", f.also}, {"tensor", f.tensor}, {"place", f.place}, {"expected", f.expected}, {"got", f.got}, {"tolerance", f.tolerance}, {"message", f.message}});
  }
  return result;
}

json mutants_json(const std::vector<conformance::MutantResult>& results) {
  json list = json::array();
  for (const conformance::MutantResult& result : results) {
    list.push_back({{"mutant", result.name}, {"mistake", result.mistake}, {"caught", result.caught}, {"law", result.law}, {"case", result.line}, {"seconds", result.seconds}, {"cases", result.cases}, {"message", result.message}});
  }
  return list;
}

}  // namespace quire::tools
