// Running cases.
#include "runner.h"

#include "case/evaluate.h"
#include "case/read_index.h"
#include "golden_cases.h"
#include "laws.h"
#include "large_cases.h"
#include "random_cases.h"

#include <quire/backend.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace quire::conformance {

using nlohmann::json;

namespace {

// Families that are a part of others: the generator's cases that have a feature, so many numbers each searched for one.
struct Part {
  const char* name;
  const char* base;
  bool (*has)(const json& test_case);
};

bool builds(const json& test_case, const char* builder) {
  if (!test_case.contains("index") || !test_case["index"].contains("then")) return false;
  for (const json& step : test_case["index"]["then"]) {
    if (step.contains(builder)) return true;
  }
  return false;
}

constexpr Part parts[] = {
    {"drafts", "attend", [](const json& c) { return builds(c, "draft"); }},
    {"packings", "attend", [](const json& c) { return c["index"].contains("packed") || c["index"].contains("whole"); }},
    {"features", "attend", [](const json& c) { return builds(c, "window") + builds(c, "select") + builds(c, "every") >= 2; }},
};

constexpr std::size_t most_failures = 100;
constexpr std::uint64_t numbers_searched = 256;
constexpr std::uint64_t cases_per_large_case = 64;

template <typename List>
bool meets(const std::set<std::string>& has, const List& wanted) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) { return has.contains(one); });
}

std::optional<Failure> refusal_failure(const json& test_case, const json& result) {
  const std::string id = test_case["id"];
  const std::string argument = id.substr(0, id.find(':'));
  const bool refused = result.value("status", "") == "error" && result.value("argument", "") == argument && result.value("intact", json()) == true;
  if (refused) return std::nullopt;
  Failure failure;
  failure.op = test_case.value("op", "");
  failure.law = "E9";
  failure.expected = "an error that names " + argument;
  failure.got = result.dump().substr(0, 200);
  failure.message = fmt::format("{}: expected {} ({}), got {}", failure.op, failure.expected, id, failure.got);
  return failure;
}

}  // namespace

std::string CaseLine::text() const { return fmt::format("{}:{}:{}", QUIRE_SEMANTICS_VERSION, family, number); }

CaseLine CaseLine::parse(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  CaseLine line;
  bool right = second != std::string::npos && text.substr(0, first) == fmt::format("{}", QUIRE_SEMANTICS_VERSION);
  if (right) {
    line.family = text.substr(first + 1, second - first - 1);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + second + 1, end, line.number);
    right = error == std::errc() && stop == end && std::find(case_families().begin(), case_families().end(), line.family) != case_families().end();
  }
  if (!right) reject("case", fmt::format("\"{}\"", text), fmt::format("{}:FAMILY:NUMBER with a family of {}", QUIRE_SEMANTICS_VERSION, fmt::join(case_families(), ", ")));
  return line;
}

const std::vector<std::string>& case_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = quire_tests::families();
    for (const Part& part : parts) all.emplace_back(part.name);
    all.insert(all.end(), {"wide", "far", "golden"});
    return all;
  }();
  return names;
}

json case_of(const CaseLine& line) {
  for (const Part& part : parts) {
    if (line.family != part.name) continue;
    for (std::uint64_t i = 0; i < numbers_searched; ++i) {
      json test_case = quire_tests::random_case(part.base, line.number * numbers_searched + i);
      if (part.has(test_case)) return test_case;
    }
  }
  if (line.family == "wide") return quire_tests::wide_case(line.number);
  if (line.family == "golden") {
    if (line.number >= golden_cases().size()) reject("case", line.text(), fmt::format("golden cases 0 to {}", golden_cases().size() - 1));
    return golden_cases()[line.number];
  }
  if (line.family == "far") return quire_tests::far_case(line.number);
  return quire_tests::random_case(line.family, line.number);
}

namespace {

// Index::advance works on the host (A11); a backend has an op for indices on its device, which no op of a case reaches.
void judge_advance(const json& test_case, Judging& judging) {
  Memory memory;
  const Surroundings nowhere;
  const json wrapped{{"index", test_case.value("index", json())}};
  Fields fields(wrapped, memory, nowhere);
  const Index index = read_index(fields);
  if (!index.is_tabled()) return;
  const IndexAbi abi(index);
  const Tensor positions = Tensor::empty(DType::i64, {index.batch(), 1});
  const quire_tensor view = positions.view();
  const quire_advance_args args{sizeof args, abi.get(), &view};
  judging.backend().run(nullptr, QUIRE_OP_ADVANCE, &args);
}

// A golden case on the candidate itself, by its own expectation.
std::optional<Failure> golden_failure(const json& test_case, const Backend& candidate) {
  if (!is_within_reach(test_case, candidate)) return std::nullopt;
  const Evaluated evaluated = evaluate(test_case, {{&candidate}, {}, {}});
  if (evaluated.ok) return std::nullopt;
  const std::string id = test_case.value("id", "");
  Failure failure;
  failure.op = *ops_of(test_case).begin();
  failure.law = id.substr(0, id.find_first_of(":,"));
  failure.message = fmt::format("golden case \"{}\": {}", id, evaluated.text.substr(0, 400));
  return failure;
}

}  // namespace

std::optional<Failure> run_case(const CaseLine& line, const json& test_case, Judging& judging, RunReport* report) {
  if (line.family == "golden") {
    std::optional<Failure> failure = golden_failure(test_case, judging.candidate());
    if (report != nullptr) {
      ++report->families[line.family].cases;
      for (const std::string& law : laws_of(test_case)) ++report->laws[law];
      if (failure) {
        ++report->families[line.family].failed;
        report->failures.push_back({line.text(), *failure});
      }
    }
    return failure;
  }
  const Evaluated evaluated = evaluate(test_case, {{&judging.backend()}, {}, {}});
  if (line.family == "index" && evaluated.ok) judge_advance(test_case, judging);
  const std::vector<CallVerdict> verdicts = judging.take();
  std::optional<Failure> failure;
  for (const CallVerdict& verdict : verdicts) {
    if (verdict.status == CallVerdict::Status::failed && !failure) failure = verdict.failure;
    if (report == nullptr) continue;
    ++report->families[line.family].calls;
    if (verdict.status == CallVerdict::Status::unsupported) {
      ++report->families[line.family].unsupported;
      ++report->unsupported[verdict.reason];
    }
    if (verdict.errors.total() > 0) report->errors[*ops_of(test_case).begin()].add(verdict.errors);
    add_call(report->regimes, verdict);
  }
  if (line.family == "bad" && !failure) failure = refusal_failure(test_case, json::parse(evaluated.text));
  if (line.family != "bad" && !evaluated.ok && !failure) {
    failure.emplace();
    failure->op = *ops_of(test_case).begin();
    failure->law = "ABI";
    failure->message = fmt::format("{}: {}", failure->op, evaluated.text.substr(0, 300));
  }
  if (report == nullptr) return failure;
  ++report->families[line.family].cases;
  for (const std::string& law : laws_of(test_case)) ++report->laws[law];
  if (failure) {
    ++report->families[line.family].failed;
    if (report->failures.size() < most_failures) report->failures.push_back({line.text(), *failure});
  }
  return failure;
}

std::uint64_t case_count(const std::vector<std::string>& families, std::uint64_t count) {
  std::uint64_t total = 0;
  for (const std::string& family : families) {
    const bool is_large = family == "wide" || family == "far";
    if (is_large)
      total += (count + cases_per_large_case / 2 - 1) / cases_per_large_case;
    else
      total += family == "golden" ? std::min<std::uint64_t>(count, golden_cases().size()) : count;
  }
  return total;
}

RunReport run_cases(const RunOptions& options) {
  RunReport report;
  Judging judging(*options.candidate, *options.reference);
  judging.classify_by(options.classify);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const std::vector<std::string>& families = options.families.empty() ? case_families() : options.families;
  // Round by round over the families, so that a run cut short has seen all of them.
  for (std::uint64_t n = 0; n < options.count; ++n) {
    for (const std::string& family : families) {
      if (options.interrupted && options.interrupted()) {
        report.interrupted = true;
        report.seconds = elapsed();
        return report;
      }
      if (options.seconds > 0 && elapsed() > options.seconds) {
        report.seconds = elapsed();
        return report;
      }
      // A case of a large family takes as long as a hundred small ones.
      const bool is_large = family == "wide" || family == "far";
      if (is_large && n % cases_per_large_case != cases_per_large_case / 2) continue;
      if (family == "golden" && n >= golden_cases().size()) continue;
      const CaseLine line{family, family == "golden" ? n : options.first + (is_large ? n / cases_per_large_case : n)};
      const json test_case = case_of(line);
      if (!meets(laws_of(test_case), options.laws) || !meets(ops_of(test_case), options.ops) || !meets(dtypes_of(test_case), options.dtypes)) continue;
      if (options.before) options.before(line);
      RunReport one;
      const bool failed = run_case(line, test_case, judging, &one).has_value();
      if (failed && options.confirms && !options.confirms(test_case, line)) {
        one.failures.clear();
        one.families[line.family].failed = 0;
      }
      report.add(one);
      if (!one.failures.empty() && options.stop_at_failure) {
        report.seconds = elapsed();
        return report;
      }
    }
  }
  report.seconds = elapsed();
  return report;
}

bool passes(const CaseLine& line, const json& test_case, const Backend& candidate, const Backend& reference) {
  Judging judging(candidate, reference);
  return !run_case(line, test_case, judging, nullptr).has_value();
}

void RunReport::add(const RunReport& other) {
  for (const auto& [family, counts] : other.families) {
    FamilyCounts& sum = families[family];
    sum.cases += counts.cases;
    sum.calls += counts.calls;
    sum.failed += counts.failed;
    sum.unsupported += counts.unsupported;
  }
  for (const auto& [law, count] : other.laws) laws[law] += count;
  for (const auto& [op, distribution] : other.errors) errors[op].add(distribution);
  add_table(regimes, other.regimes);
  for (const auto& [reason, count] : other.unsupported) unsupported[reason] += count;
  for (const CaseFailure& failure : other.failures) {
    if (failures.size() < most_failures) failures.push_back(failure);
  }
}

FamilyCounts RunReport::total() const {
  FamilyCounts sum;
  for (const auto& [family, counts] : families) {
    sum.cases += counts.cases;
    sum.calls += counts.calls;
    sum.failed += counts.failed;
    sum.unsupported += counts.unsupported;
  }
  return sum;
}

std::vector<std::string> RunReport::missing_laws() const {
  std::vector<std::string> missing;
  for (const std::string& law : all_laws()) {
    if (!laws.contains(law)) missing.push_back(law);
  }
  return missing;
}

}  // namespace quire::conformance
