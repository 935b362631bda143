// The report of a calibration run, as Markdown and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "honest_runs.h"

namespace quire::conformance {

/// What a run of honest implementations found, with what repeats it.
struct CalibrationReport {
  std::string command;  ///< "quire conformance --honest --count 2100"
  std::string date;     ///< "2026-12-01"
  std::string machine;  ///< its class: "x86-64, 2 threads"
  std::uint64_t first = 0, count = 0;
  bool interrupted = false;

  struct Way {
    std::string name, contract;
    FamilyCounts total;
    double seconds = 0;
  };
  std::vector<Way> ways;
  std::map<std::string, RegimeTable> contracts;  ///< by contract
  std::vector<std::string> false_alarms;         ///< the first hundred: the way, the message, the case's line

  void add(const HonestResult& result);
  FamilyCounts total() const;
};

/// Tables: ways; each op's results by contract; each op's largest ratios by regime and contract; then all counts by regime.
std::string calibration_markdown(const CalibrationReport& report);
nlohmann::json calibration_json(const CalibrationReport& report);

}  // namespace quire::conformance
