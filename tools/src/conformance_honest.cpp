// Calibration from the command line.
#include "conformance_honest.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "conformance_report.h"
#include "interrupt.h"
#include "progress.h"
#include "report_file.h"
#include "run/calibration_report.h"
#include "terminal.h"

namespace quire::tools {

namespace {

using conformance::CalibrationReport;
using conformance::CaseLine;
using conformance::HonestResult;

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// What kind of machine this is, by no name of its own.
std::string machine_class() {
#if defined(__x86_64__)
  constexpr std::string_view processor = "x86-64";
#elif defined(__aarch64__)
  constexpr std::string_view processor = "64-bit Arm";
#else
  constexpr std::string_view processor = "another processor";
#endif
  return fmt::format("{}, {} threads", processor, std::thread::hardware_concurrency());
}

// The command that repeats the run.
std::string command_of(const HonestCommand& command) {
  std::string text = "quire conformance --honest";
  if (!command.names.empty()) text += fmt::format("={}", fmt::join(command.names, ","));
  for (const std::string& line : command.cases) text += " --case " + line;
  if (command.cases.empty() && !command.families.empty()) text += fmt::format(" --family {}", fmt::join(command.families, ","));
  if (command.cases.empty()) text += fmt::format(" --seed {} --count {}", command.seed, command.count);
  return command.report.empty() ? text : text + " --report " + printable(command.report);
}

void print_way(const HonestResult& result) {
  const auto total = result.report.total();
  fmt::print("{:<46} {:>9} cases {:>4} false alarms {:>7.1f} s\n", result.name, total.cases, total.failed, result.report.seconds);
  for (const auto& failure : result.report.failures) {
    fmt::print("FALSE ALARM {}\n       replay: quire conformance --honest={} --case {}\n", failure.failure.message, result.name,
               failure.line);
  }
  std::fflush(stdout);
}

}  // namespace

int run_honest(const HonestCommand& command) {
  std::optional<ReportFile> file;
  if (!command.report.empty()) file.emplace("report", command.report);

  CalibrationReport report;
  report.command = command_of(command);
  report.date = today();
  report.machine = machine_class();
  report.first = command.first;
  report.count = command.cases.empty() ? command.count : command.cases.size();
  std::map<std::string, conformance::ErrorDistribution> errors;

  conformance::HonestRun run;
  run.names = command.names;
  run.families = command.families;
  run.first = command.first;
  run.count = command.count;
  for (const std::string& text : command.cases) run.lines.push_back(CaseLine::parse(text));
  Progress progress(conformance::honest_case_count(run), !command.quiet);
  run.interrupted = interrupted;
  run.jobs = command.jobs;
  run.before = [&](const std::vector<CaseLine>& running) {
    std::vector<std::string> texts;
    for (const CaseLine& line : running) texts.push_back(line.text());
    progress.step(fmt::format("{}", fmt::join(texts, ",")));
  };
  run.done = [&](const HonestResult& result) {
    progress.clear();
    report.add(result);
    for (const auto& [op, distribution] : result.report.errors) errors[op].add(distribution);
    if (!command.json) print_way(result);
  };
  conformance::run_honest(run);
  progress.clear();

  const auto total = report.total();
  if (command.json) {
    fmt::print("{}\n", calibration_json(report).dump(2));
  } else {
    print_errors(errors);
    fmt::print("{} cases, {} false alarms\n", total.cases, total.failed);
  }
  if (file) file->write(file->is_json() ? calibration_json(report).dump(2) + "\n" : calibration_markdown(report));
  if (report.interrupted) complain("quire conformance: interrupted\n");
  if (report.interrupted) return interrupted_exit;
  return total.failed == 0 && total.cases > 0 ? 0 : 1;
}

}  // namespace quire::tools
