// Writing calibration reports.
#include "calibration_report.h"

#include <fmt/format.h>
#include <quire/backend.h>

#include <set>

namespace quire::conformance {

using nlohmann::json;

namespace {

constexpr std::string_view bounds[] = {"<=0.01", "<=0.1", "<=0.25", "<=0.5", "<=0.75", "<=1", ">1"};
constexpr std::size_t most_false_alarms = 100;

// 1234567 as 1,234,567.
std::string grouped(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// A share in per cent; what is not none is not shown as none.
std::string share(std::int64_t part, std::int64_t whole) {
  if (part == 0) return "0";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "<0.01" : fmt::format("{:.{}f}", percent, percent < 1 ? 2 : 1);
}

std::string largest(const ErrorDistribution& errors) { return errors.total() == 0 ? "-" : fmt::format("{:.3f}", errors.largest); }

std::string shares(const ErrorDistribution& errors) {
  std::string text;
  for (const std::int64_t count : errors.counts) text += fmt::format(" {} |", errors.total() == 0 ? "-" : share(count, errors.total()));
  return text;
}

std::string share_headings() {
  std::string text;
  for (const std::string_view bound : bounds) text += fmt::format(" {} |", bound);
  return text;
}

std::string rule_of(std::size_t left, std::size_t right) {
  std::string text = "|";
  for (std::size_t i = 0; i < left; ++i) text += "---|";
  for (std::size_t i = 0; i < right; ++i) text += "--:|";
  return text + "\n";
}

std::string row_of(const std::string& names, const RegimeErrors& errors) {
  return fmt::format("| {} | {} | {} | {} | {} |{} {} |\n", names, grouped(errors.calls), grouped(errors.all.total()), largest(errors.all),
                     grouped(errors.shares.total()), shares(errors.shares), largest(errors.shares));
}

std::string distribution_headings(std::string_view names) {
  return fmt::format("| {} | calls | elements | largest ratio | shares of |{} largest |\n", names, share_headings());
}

// The contracts in the order in which they ran.
std::vector<std::string> contracts_of(const CalibrationReport& report) {
  std::vector<std::string> names;
  for (const auto& way : report.ways) {
    if (names.empty() || names.back() != way.contract) names.push_back(way.contract);
  }
  return names;
}

const RegimeErrors* find(const CalibrationReport& report, const std::string& contract, const std::string& op, const std::string& regime) {
  const auto table = report.contracts.find(contract);
  if (table == report.contracts.end()) return nullptr;
  const auto regimes = table->second.find(op);
  if (regimes == table->second.end()) return nullptr;
  const auto errors = regimes->second.find(regime);
  return errors == regimes->second.end() ? nullptr : &errors->second;
}

// Ops, and their classes without "all", over all contracts.
std::map<std::string, std::set<std::string>> classes_of(const CalibrationReport& report) {
  std::map<std::string, std::set<std::string>> classes;
  for (const auto& [contract, table] : report.contracts) {
    for (const auto& [op, regimes] : table) {
      for (const auto& [regime, errors] : regimes) {
        if (regime != "all") classes[op].insert(regime);
      }
    }
  }
  return classes;
}

std::string by_contract(const CalibrationReport& report, const std::string& op) {
  std::string text = distribution_headings("contract") + rule_of(1, 12);
  for (const std::string& contract : contracts_of(report)) {
    if (const RegimeErrors* errors = find(report, contract, op, "all"); errors != nullptr) text += row_of(contract, *errors);
  }
  return text;
}

std::string largest_by_regime(const CalibrationReport& report, const std::string& op, const std::set<std::string>& classes) {
  const std::vector<std::string> contracts = contracts_of(report);
  std::string text = fmt::format("| regime | {} |\n", fmt::join(contracts, " | ")) + rule_of(1, contracts.size());
  for (const std::string& regime : classes) {
    text += fmt::format("| {} |", regime);
    for (const std::string& contract : contracts) {
      const RegimeErrors* errors = find(report, contract, op, regime);
      text += fmt::format(" {} |", errors == nullptr ? "-" : largest(errors->shares));
    }
    text += "\n";
  }
  return text;
}

std::string all_counts(const CalibrationReport& report, const std::string& op, const std::set<std::string>& classes) {
  std::string text = distribution_headings("contract | regime") + rule_of(2, 12);
  for (const std::string& contract : contracts_of(report)) {
    for (const std::string& regime : classes) {
      if (const RegimeErrors* errors = find(report, contract, op, regime); errors != nullptr)
        text += row_of(contract + " | " + regime, *errors);
    }
  }
  return text;
}

json distribution_json(const ErrorDistribution& errors) {
  json counts = json::object();
  for (std::size_t i = 0; i < errors.counts.size(); ++i) counts[std::string(bounds[i])] = errors.counts[i];
  return {{"elements", errors.total()}, {"counts", counts}, {"largest", errors.largest}};
}

}  // namespace

void CalibrationReport::add(const HonestResult& result) {
  ways.push_back({result.name, result.contract, result.report.total(), result.report.seconds});
  add_table(contracts[result.contract], result.report.regimes);
  interrupted |= result.report.interrupted;
  for (const CaseFailure& failure : result.report.failures) {
    if (false_alarms.size() < most_false_alarms)
      false_alarms.push_back(fmt::format("{}: {} (case {})", result.name, failure.failure.message, failure.line));
  }
}

FamilyCounts CalibrationReport::total() const {
  FamilyCounts sum;
  for (const Way& way : ways) {
    sum.cases += way.total.cases;
    sum.calls += way.total.calls;
    sum.failed += way.total.failed;
    sum.unsupported += way.total.unsupported;
  }
  return sum;
}

std::string calibration_markdown(const CalibrationReport& report) {
  const FamilyCounts sum = report.total();
  double seconds = 0;
  for (const auto& way : report.ways) seconds += way.seconds;
  std::string text = fmt::format(
      "# Calibration: honest implementations under their own contracts\n\n"
      "    {}\n\n"
      "Laws, version {}. {}, {}, {:.0f} s of work. Cases from number {} on, {} per family and way.\n\n"
      "**{} cases, {} calls: {} false alarms.**{}\n\n",
      report.command, QUIRE_SEMANTICS_VERSION, report.date, report.machine, seconds, report.first,
      grouped(static_cast<std::int64_t>(report.count)), grouped(sum.cases), grouped(sum.calls), grouped(sum.failed),
      report.interrupted ? " The run was interrupted: it is not whole." : "");
  for (const std::string& alarm : report.false_alarms) text += fmt::format("- {}\n", alarm);
  if (!report.false_alarms.empty()) text += "\n";

  text +=
      "An element's *share* says how much of what the error model allows it took: 0 where the right result's final rounding explains it, 1 at the "
      "end of what is accepted, past 1 a false alarm. (The ratio of an element's error to its tolerance has that rounding in both: where the model "
      "allows little, an honest result may lie at 1.) The columns give the elements with shares up to 0.01, 0.1 and so on, in per cent.\n\n"
      "Contracts say what is rounded before products (float32: nothing; tf32, half, bf16) or where intermediates are stored within a call "
      "(bf16-stored and so on). Sums are in "
      "float32 throughout.\n\n"
      "## Ways of computing\n\n| way | contract | cases | calls | false alarms | seconds |\n" +
      rule_of(2, 4);
  for (const auto& way : report.ways) {
    text += fmt::format("| {} | {} | {} | {} | {} | {:.1f} |\n", way.name, way.contract, grouped(way.total.cases), grouped(way.total.calls),
                        grouped(way.total.failed), way.seconds);
  }
  const auto classes = classes_of(report);
  for (const auto& [op, regimes] : classes) {
    text += fmt::format("\n## {}\n\n{}\nThe largest share, by regime and contract:\n\n{}", op, by_contract(report, op),
                        largest_by_regime(report, op, regimes));
  }
  text += "\n# All counts, by op, contract and regime\n\nEach kind of regime (decay, beta, ...) counts every call once.\n";
  for (const auto& [op, regimes] : classes) text += fmt::format("\n## {}, every regime\n\n{}", op, all_counts(report, op, regimes));
  return text;
}

json calibration_json(const CalibrationReport& report) {
  const FamilyCounts sum = report.total();
  json result{{"command", report.command},
              {"semantics", QUIRE_SEMANTICS_VERSION},
              {"date", report.date},
              {"machine", report.machine},
              {"first", report.first},
              {"count", report.count},
              {"interrupted", report.interrupted},
              {"cases", sum.cases},
              {"calls", sum.calls},
              {"failed", sum.failed},
              {"false_alarms", report.false_alarms}};
  result["ways"] = json::array();
  for (const auto& way : report.ways) {
    result["ways"].push_back({{"name", way.name},
                              {"contract", way.contract},
                              {"cases", way.total.cases},
                              {"calls", way.total.calls},
                              {"failed", way.total.failed},
                              {"seconds", way.seconds}});
  }
  result["errors"] = json::object();
  for (const auto& [contract, table] : report.contracts) {
    for (const auto& [op, regimes] : table) {
      for (const auto& [regime, errors] : regimes) {
        result["errors"][op][contract][regime] = {
            {"calls", errors.calls}, {"all", distribution_json(errors.all)}, {"shares", distribution_json(errors.shares)}};
      }
    }
  }
  return result;
}

}  // namespace quire::conformance
