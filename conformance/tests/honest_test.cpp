// Honest float32 implementations agree with the reference; each mutant does not.
#include "case/evaluate.h"
#include "honest/backend.h"
#include "mutants/mutants.h"
#include "random_cases.h"

#include <quire/call.h>
#include <quire/registry.h>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace {

using nlohmann::json;
using quire::conformance::HonestOptions;
using quire::conformance::Mutant;
using quire::conformance::Needs;

using Recurrence = HonestOptions::Recurrence;
using Attention = HonestOptions::Attention;

const std::vector<std::string>& families() {
  static const std::vector<std::string> names = {"index", "extend", "attend", "gdn_prefill", "gdn_decode",
                                                 "slots", "paged",  "verify", "programs"};
  return names;
}

std::string text_on(const quire::Backend& backend, const json& test_case) {
  quire::conformance::EvaluateOptions options;
  options.on.backend = &backend;
  return quire::conformance::evaluate(test_case, options).text;
}

// ---- a backend whose results lie in poisoned memory ----

const quire_backend_table* under_test = nullptr;
std::uint64_t digest = 0;  // of the bytes of every result so far

template <typename Body>
void for_results(quire_op op, const void* args, const Body& body) {
  const quire::Call call(op, args);
  for (const quire::CallTensor& entry : call.tensors()) {
    if (entry.role != quire::TensorRole::write) continue;  // results are dense
    std::int64_t bytes = quire::size_of(static_cast<quire::DType>(entry.tensor->dtype));
    for (int axis = 0; axis < entry.tensor->rank; ++axis) bytes *= entry.tensor->shape[axis];
    if (bytes > 0) body(static_cast<unsigned char*>(entry.tensor->data), bytes);
  }
}
quire_status describe_poisoned(quire_backend_info* info) { return under_test->describe(info); }
quire_status supports_poisoned(quire_op op, const void* args) { return under_test->supports(op, args); }
quire_status run_poisoned(quire_stream* stream, quire_op op, const void* args, void* workspace, std::size_t bytes) {
  for_results(op, args, [](unsigned char* data, std::int64_t size) { std::memset(data, 0x7f, static_cast<std::size_t>(size)); });
  const quire_status status = under_test->run(stream, op, args, workspace, bytes);
  for_results(op, args, [](const unsigned char* data, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) digest = (digest ^ data[i]) * 1099511628211U;
  });
  return status;
}
quire_status contract_poisoned(quire_op op, quire_dtype input, quire_dtype state, quire_contract* contract) {
  return under_test->contract(op, input, state, contract);
}

const quire::Backend& poisoned(const quire_backend_table* table) {
  under_test = table;
  static const quire_backend_table outer =
      quire::conformance::honest::host_table<describe_poisoned, supports_poisoned, run_poisoned, contract_poisoned>();
  static std::map<const quire_backend_table*, quire::Backend> backends;
  return backends.try_emplace(table, &outer, "(test)").first->second;
}

// ---- agreement to a loose tolerance ----

double number(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// One rounding of the dtype, relative, and its smallest step.
std::pair<double, double> steps_of(const std::string& dtype) {
  if (dtype == "f16") return {0x1p-10, 0x1p-24};
  if (dtype == "bf16") return {0x1p-7, 0x1p-126};
  if (dtype == "f8_e4m3fn") return {0x1p-3, 0x1p-9};
  if (dtype == "f8_e5m2") return {0x1p-2, 0x1p-16};
  return {0, 0x1p-126};
}

double largest_of(const json& data) {
  double largest = 0;
  for (const json& element : data) {
    if (const double x = std::fabs(number(element)); std::isfinite(x)) largest = std::max(largest, x);
  }
  return largest;
}

// `beside` is the largest number that stands in any of the call's results: what is left after a cancellation carries its rounding.
bool tensors_agree(const json& expected, const json& got, bool is_exact, double beside) {
  if (expected["dtype"] != got["dtype"] || expected["shape"] != got["shape"]) return false;
  const json &a = expected["data"], &b = got["data"];
  const auto [relative, least] = steps_of(expected["dtype"]);
  const double allowed = 2e-3 * largest_of(a) + 1e-6 * beside + least;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = number(a[i]), y = number(b[i]);
    if (x == y && (!is_exact || std::signbit(x) == std::signbit(y))) continue;
    if (std::isnan(x) && std::isnan(y)) continue;
    if (is_exact || std::isnan(x) || std::isnan(y)) return false;
    if (std::fabs(x - y) <= allowed + relative * std::fabs(x)) continue;
    return false;
  }
  return true;
}

// Long keys that are not normalised let a state grow without bound; what then comes out of float32 says nothing.
constexpr double unbounded = 1e20;

// The first output in which two results differ; empty where there is none.
std::string difference(const json& expected, const json& got) {
  static const std::set<std::string> rounded = {"out", "lse", "output", "output_state", "state_checkpoints", "state_pool"};
  if (expected.is_array()) {
    for (std::size_t step = 0; step < expected.size(); ++step) {
      if (step >= got.size()) return "steps";
      if (const std::string name = difference(expected[step], got[step]); !name.empty())
        return "step " + std::to_string(step) + ": " + name;
    }
    return {};
  }
  double beside = 0;
  for (const auto& [name, value] : expected.items()) {
    if (rounded.contains(name)) beside = std::max(beside, largest_of(value["data"]));
  }
  if (beside > unbounded) return {};
  for (const auto& [name, value] : expected.items()) {
    if (!got.contains(name)) return name;
    const bool is_tensor = value.is_object() && value.contains("dtype");
    if (is_tensor ? !tensors_agree(value, got[name], !rounded.contains(name), beside) : name != "message" && value != got[name])
      return name;
  }
  return {};
}

// ---- option sets, each a backend of its own ----

const std::array<HonestOptions, 14>& option_sets() {
  static const std::array<HonestOptions, 14> sets = {{
      {Recurrence::token, 64, false, Attention::direct, false, false},
      {Recurrence::token, 64, false, Attention::online, true, false},
      {Recurrence::token, 64, false, Attention::split, false, true},
      {Recurrence::token, 64, false, Attention::online, true, true},
      {Recurrence::chunked, 16, false, Attention::direct, true, false},
      {Recurrence::chunked, 16, true, Attention::split, true, false},
      {Recurrence::chunked, 16, true, Attention::online, false, true},
      {Recurrence::chunked, 64, false, Attention::online, false, false},
      {Recurrence::chunked, 64, true, Attention::direct, false, false},
      {Recurrence::chunked, 64, true, Attention::split, true, true},
      {Recurrence::chunked, 64, false, Attention::direct, true, true},
      {Recurrence::chunked, 128, false, Attention::split, false, false},
      {Recurrence::chunked, 128, true, Attention::online, true, false},
      {Recurrence::chunked, 128, true, Attention::direct, true, true},
  }};
  return sets;
}

template <std::size_t N>
struct OptionSet {
  static quire_status describe(quire_backend_info* info) {
    return quire::conformance::honest::describe_as("honest", "an option set", info);
  }
  static quire_status run(quire_stream*, quire_op op, const void* args, void*, std::size_t) {
    return quire::conformance::honest_run(op, args, option_sets()[N]);
  }
  static quire_status contract(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) {
    return quire::conformance::honest::contract_of(option_sets()[N], op, contract);
  }
  static quire_backend_table table() {
    return quire::conformance::honest::host_table<describe, quire::conformance::honest::supports_host, run, contract>();
  }
};
template <std::size_t... N>
std::array<quire_backend_table, sizeof...(N)> option_tables(std::index_sequence<N...>) {
  return {OptionSet<N>::table()...};
}

// One case with what the reference and the default honest backend make of it.
struct Known {
  std::string family;
  json test_case;
  json reference;
  std::string honest;
  std::uint64_t honest_digest;
};

struct Bits {
  std::string text;
  std::uint64_t digest;
};
Bits bits_on(const quire_backend_table* table, const json& test_case) {
  digest = 14695981039346656037U;
  std::string text = text_on(poisoned(table), test_case);
  return {std::move(text), digest};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

const std::vector<Known>& known_cases() {
  static const std::vector<Known> all = [] {
    std::vector<Known> cases;
    const quire::Backend& reference = quire::backend("reference");
    for (std::uint64_t n = 0; n < 722; ++n) {
      for (const std::string& family : families()) {
        Known known{family, quire_tests::random_case(family, n), {}, {}, 0};
        known.reference = json::parse(text_on(reference, known.test_case));
        const Bits honest = bits_on(quire::conformance::honest_backend(), known.test_case);
        known.honest = honest.text;
        known.honest_digest = honest.digest;
        cases.push_back(std::move(known));
      }
    }
    return cases;
  }();
  return all;
}

// Whether the mutant leaves the bits of the honest backend that it was made from.
bool differs(const Mutant& mutant, const Known& known) {
  const Bits bits = bits_on(mutant.table, known.test_case);
  if (bits.text != known.honest || bits.digest != known.honest_digest) return true;
  return mutant.needs == Needs::repeats && bits_on(mutant.table, known.test_case).digest != bits.digest;
}

}  // namespace

TEST_CASE("honest float32 implementations agree with the reference") {
  static const auto tables = option_tables(std::make_index_sequence<14>());
  for (std::size_t set = 0; set < tables.size(); ++set) {
    int failures = 0;
    const quire::Backend& backend = poisoned(&tables[set]);
    for (std::size_t n = 0; n < known_cases().size(); ++n) {
      // Sanitizers look for other faults than wrong numbers: a quarter of the cases each.
      if (is_sanitized && n / families().size() % 4 != set % 4) continue;
      const Known& known = known_cases()[n];
      const json got = json::parse(text_on(backend, known.test_case));
      const std::string name = difference(known.reference, got);
      if (name.empty() || ++failures > 3) continue;
      INFO("option set ", set, ", ", known.family, ", output ", name, ": ", known.test_case.dump());
      INFO("reference ", known.reference.dump());
      INFO("honest ", got.dump());
      CHECK(false);
    }
    CHECK_MESSAGE(failures == 0, "option set ", set);
  }
}

TEST_CASE("every mutant differs from what it was made from") {
  std::map<std::string, int> names;
  for (const Mutant& mutant : quire::conformance::mutants()) {
    CHECK(++names[mutant.name] == 1);
    CHECK_FALSE(mutant.mistake.empty());
    CHECK_FALSE(mutant.laws.empty());
    if (mutant.needs != Needs::nothing && mutant.needs != Needs::repeats) continue;
    bool found = false;
    for (const Known& known : known_cases()) {
      if ((found = differs(mutant, known))) break;
    }
    CHECK_MESSAGE(found, mutant.name);
  }
  CHECK(quire::conformance::mutants().size() >= 64);
}

TEST_CASE("every mutant of captured steps runs single calls as what it was made from, and not steps") {
  // Two calls in one step of which the second reads what the first stored, launched with another pool and as captured; then a state that goes
  // on from launch to launch.
  std::vector<json> programs = {json::parse(R"({"steps":[
      {"capture":[{"op":"extend","index":{"pos":[[0]],"table":[[2,0]]},"values":[[[7]]],"pool":[[1],[2],[3]],"as":"a"},
                  {"op":"extend","index":{"pos":[[1]],"table":[[2,0]]},"values":[[[8]]],"pool":{"ref":"a.pool"},"as":"b"}],"as":"step"},
      {"launch":"step","a.values":[[[5]]],"a.pool":[[4],[5],[6]]},{"launch":"step"}]})"),
                                json::parse(R"({"steps":[
      {"capture":[{"op":"gdn_decode","q":[[[[1.0]]]],"k":[[[[1.0]]]],"v":[[[[2.0]]]],"use_qk_l2norm":false,"state_pool":[[[[9.0]]],[[[0.0]]]],
                   "g":[[[0.5]]],"beta":[[[0.5]]],"state_indices":[1]}],"as":"step"},
      {"launch":"step"},{"launch":"step"}]})")};
  for (std::uint64_t number = 0; number < 40; ++number) programs.push_back(quire_tests::random_case("steps", number));
  struct Asked {
    json program, single;
    std::string honest, honest_single;
  };
  const quire::Backend honest(quire::conformance::honest_backend(), "(test)");
  std::vector<Asked> all;
  for (const json& program : programs) {
    json single = program["steps"][0]["capture"][0];
    single.erase("as");
    all.push_back({program, single, text_on(honest, program), text_on(honest, single)});
  }
  int count = 0;
  for (const Mutant& mutant : quire::conformance::mutants()) {
    if (mutant.needs != Needs::steps) continue;
    ++count;
    const quire::Backend wrong(mutant.table, "(test)");
    bool found = false;
    for (const Asked& asked : all) {
      CHECK(text_on(wrong, asked.single) == asked.honest_single);
      found = found || text_on(wrong, asked.program) != asked.honest;
    }
    CHECK_MESSAGE(found, mutant.name);
  }
  CHECK(count >= 10);
}
