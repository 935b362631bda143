// Judging a result (case format: expect, tolerance).
#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quire::conformance {

using nlohmann::json;

namespace {

double tolerance_of(const std::string& name, const json* tolerance) {
  if (tolerance == nullptr) return 0;
  const json* value = tolerance;
  if (tolerance->is_object()) {
    const auto found = tolerance->find(name);
    if (found == tolerance->end()) return 0;
    value = &*found;
  }
  if (!value->is_number() || !(value->get<double>() >= 0)) reject("tolerance", std::string(kind_of(*value)), "numbers of 0 or more");
  return value->get<double>();
}

bool is_equal(double expected, double got, double tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (expected == got) return tolerance > 0 || std::signbit(expected) == std::signbit(got);
  return std::fabs(expected - got) <= tolerance;
}

std::string place(const Shape& shape, std::int64_t n) {
  Shape indices(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    indices[axis] = n % shape[axis];
    n /= shape[axis];
  }
  return to_string(indices);
}

std::string tensor_difference(const std::string& name, const Tensor& got, const json& expected_json, double tolerance) {
  Memory memory;
  const Surroundings nowhere;
  const json wrapped{{name, expected_json}};
  Fields fields(wrapped, memory, nowhere);
  const FieldKind kind = got.dtype() == DType::boolean ? FieldKind::boolean : is_float(got.dtype()) ? FieldKind::real : FieldKind::index;
  const Tensor expected = fields.tensor(name, kind);
  const bool states_dtype = expected_json.is_object();
  if (expected.shape() != got.shape() || (states_dtype && expected.dtype() != got.dtype())) {
    return fmt::format("{}: expected {}{}, got {}{}", name, quire::name(expected.dtype()), to_string(expected.shape()), quire::name(got.dtype()), to_string(got.shape()));
  }
  const Tensor a = expected.clone();
  const Tensor b = got.clone();
  for (std::int64_t n = 0; n < a.elements(); ++n) {
    const std::byte* ea = a.raw() + n * size_of(a.dtype());
    const std::byte* eb = b.raw() + n * size_of(b.dtype());
    if (is_float(b.dtype()) ? is_equal(read_number(a.dtype(), ea), read_number(b.dtype(), eb), tolerance)
                            : read_integer(a.dtype(), ea) == read_integer(b.dtype(), eb)) {
      continue;
    }
    return fmt::format("{}{}: expected {}, got {}{}", name, place(a.shape(), n), read_number(a.dtype(), ea), read_number(b.dtype(), eb),
                       tolerance > 0 && is_float(b.dtype()) ? fmt::format(" (tolerance {})", tolerance) : "");
  }
  return {};
}

// Findings in any order, without their messages.
json without_messages(json findings) {
  for (json& finding : findings) {
    if (finding.is_object()) finding.erase("message");
  }
  if (findings.is_array()) std::sort(findings.begin(), findings.end());
  return findings;
}

}  // namespace

std::string difference(const Outcome& outcome, const json& expect, const json* tolerance) {
  if (!expect.is_object()) reject("expect", std::string(kind_of(expect)), "a result");
  if (tolerance != nullptr && !tolerance->is_object()) tolerance_of({}, tolerance);
  const std::string expected_status = expect.value("status", std::string("ok"));
  const std::string status = outcome.error ? "error" : "ok";
  if (status != expected_status) {
    return fmt::format("status: expected {}, got {}{}", expected_status, status, outcome.error ? fmt::format(" ({})", outcome.error->what()) : "");
  }
  if (outcome.error) {
    for (const auto& [key, got] : {std::pair<std::string, std::string>{"code", std::string(name(outcome.error->code()))}, {"argument", outcome.error->argument()}}) {
      if (expect.contains(key) && expect[key] != got) return fmt::format("{}: expected {}, got \"{}\"", key, expect[key].dump(), got);
    }
    return {};
  }
  for (const auto& item : expect.items()) {
    if (item.key() == "status" || item.key() == "id" || item.key() == "intact") continue;
    const auto output = std::find_if(outcome.outputs.begin(), outcome.outputs.end(), [&](const Output& o) { return o.name == item.key(); });
    if (output == outcome.outputs.end()) return fmt::format("{}: expected, but the op has no such output here", item.key());
    if (const Tensor* tensor = std::get_if<Tensor>(&output->value)) {
      std::string text = tensor_difference(item.key(), *tensor, item.value(), tolerance_of(item.key(), tolerance));
      if (!text.empty()) return text;
    } else {
      const json& got = std::get<json>(output->value);
      const bool same = item.key() == "findings" ? without_messages(got) == without_messages(item.value()) : got == item.value();
      if (!same) return fmt::format("{}: expected {}, got {}", item.key(), item.value().dump(), got.dump());
    }
  }
  return {};
}

}  // namespace quire::conformance
