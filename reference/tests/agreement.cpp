// Comparing two results of one case.
#include "agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace quire_tests {

namespace {

using nlohmann::json;

double number(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// Both compute in float64 and round once, but their transcendental functions differ in the last place of float64, and so may a result that
// lies close to the middle between two values: one step of the dtype is allowed where such functions are used.
double step_of(const std::string& dtype, double value) {
  const int mantissa = dtype == "f64" ? 52 : dtype == "f32" ? 23 : dtype == "f16" ? 10 : dtype == "bf16" ? 7 : dtype == "f8_e4m3fn" ? 3 : 2;
  const int least = dtype == "f64" ? -1022 : dtype == "f32" || dtype == "bf16" ? -126 : dtype == "f16" || dtype == "f8_e5m2" ? -14 : -6;
  int exponent = least;
  if (value != 0 && std::isfinite(value)) exponent = std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - mantissa);
}

// f64 results carry the functions' own error through sums.
constexpr double f64_steps = 4096;

std::string tensor_disagreement(const std::string& name, const json& expected, const json& got, bool rounds) {
  if (!got.is_object() || got.value("dtype", "") != expected.value("dtype", "") || got["shape"] != expected["shape"]) {
    return name + ": expected " + expected.value("dtype", "") + expected["shape"].dump() + ", got " + got.dump().substr(0, 80);
  }
  const std::string dtype = expected["dtype"];
  const json& a = expected["data"];
  const json& b = got["data"];
  if (a.size() != b.size()) return name + ": another count of elements";
  // Where terms cancel, what is left carries the functions' error in the terms, which are no larger than the tensor's largest element
  // by more than a few powers of two here.
  double largest = 0;
  for (const json& element : a) {
    if (const double x = std::fabs(number(element)); std::isfinite(x)) largest = std::max(largest, x);
  }
  const double cancelled = std::ldexp(largest, -46);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = number(a[i]);
    const double y = number(b[i]);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!rounds && x == y && std::signbit(x) == std::signbit(y)) continue;
    if (rounds && (x == y || std::fabs(x - y) <= step_of(dtype, std::max(std::fabs(x), std::fabs(y))) * (dtype == "f64" ? f64_steps : 1) + cancelled)) continue;
    return name + "[" + std::to_string(i) + "]: expected " + a[i].dump() + ", got " + b[i].dump();
  }
  return {};
}

std::string findings_disagreement(json expected, json got) {
  const auto bare = [](json& list) {
    for (json& finding : list) finding.erase("message");
    std::sort(list.begin(), list.end());
  };
  bare(expected);
  bare(got);
  for (const json& finding : expected) {
    if (std::find(got.begin(), got.end(), finding) == got.end()) return "findings: missing " + finding.dump();
  }
  for (const json& finding : got) {
    if (std::find(expected.begin(), expected.end(), finding) == expected.end()) return "findings: unexpected " + finding.dump();
  }
  return expected.size() == got.size() ? "" : "findings: one is given twice";
}

}  // namespace

std::string disagreement(const json& test_case, const json& expected, const json& got) {
  if (expected.is_array()) {
    if (!got.is_array() || got.size() != expected.size()) return "a program of another number of results";
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string text = disagreement(test_case["steps"][i], expected[i], got[i]);
      if (!text.empty()) return "step " + std::to_string(i) + ": " + text;
    }
    return {};
  }
  if (expected["status"] != got["status"]) return "status: expected " + expected.dump().substr(0, 300) + ", got " + got.dump().substr(0, 300);
  if (got.value("intact", json()) != true) return "not intact: " + got["intact"].dump();
  if (expected["status"] == "error") {
    for (const char* key : {"code", "argument"}) {
      if (expected[key] != got[key]) return std::string(key) + ": expected " + expected.dump() + ", got " + got.dump();
    }
    return {};
  }
  for (const auto& item : expected.items()) {
    const std::string& name = item.key();
    if (name == "status" || name == "id") continue;
    if (!got.contains(name)) return name + ": missing";
    if (name == "findings") {
      if (std::string text = findings_disagreement(item.value(), got[name]); !text.empty()) return text;
    } else if (item.value().is_object() && item.value().contains("dtype")) {
      static const std::set<std::string> rounding = {"out", "lse", "output", "output_state", "state_checkpoints", "state_pool"};
      if (std::string text = tensor_disagreement(name, item.value(), got[name], rounding.contains(name)); !text.empty()) return text;
    } else if (item.value() != got[name]) {
      return name + ": expected " + item.value().dump() + ", got " + got[name].dump();
    }
  }
  for (const auto& item : got.items()) {
    if (!expected.contains(item.key()) && item.key() != "intact") return item.key() + ": unexpected";
  }
  return {};
}

}  // namespace quire_tests
