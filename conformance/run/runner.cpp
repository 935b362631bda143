// Running cases.
#include "runner.h"

#include "case/evaluate.h"
#include "case/read_index.h"
#include "case/result_text.h"
#include "golden_cases.h"
#include "laws.h"
#include "large_cases.h"
#include "random_cases.h"

#include <quire/backend.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

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

bool meets(const std::set<std::string>& has, const std::vector<std::string>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) { return has.contains(one); });
}

bool is_wanted(const json& test_case, const RunOptions& options) {
  return (options.laws.empty() || meets(laws_of(test_case), options.laws)) && (options.ops.empty() || meets(ops_of(test_case), options.ops)) &&
         (options.dtypes.empty() || meets(dtypes_of(test_case), options.dtypes));
}

std::optional<Failure> refusal_failure(const json& test_case, const json& result) {
  const std::string id = test_case["id"];
  const std::string argument = id.substr(0, id.find(':'));
  const bool refused = result.value("status", "") == "error" && result.value("argument", "") == argument && result.value("intact", json()) == true;
  if (refused) return std::nullopt;
  Failure failure;
  failure.op = test_case.value("op", "");
  const std::set<std::string> laws = laws_of(test_case);
  failure.law = laws.empty() ? "E9" : *laws.begin();  // E9 is what asks for an argument's name
  failure.expected = "an error that names " + argument;
  failure.got = result.dump().substr(0, 200);
  failure.message = fmt::format("{}: expected {} ({}), got {}", failure.op, failure.expected, id, failure.got);
  return failure;
}

// A paged call is judged as the calls it is made of; that rows are pages is told by the case. Where a row is at fault and not its numbers,
// the page table's law is the most particular one.
void name_pages(const json& test_case, Failure& failure) {
  const std::string op = test_case.value("op", "");
  const bool is_prefill = op == "gdn_prefill_paged" && failure.op == "gdn_prefill";
  if (failure.tensor.empty() || (!is_prefill && !(op == "gdn_decode_paged" && failure.op == "gdn_decode"))) return;
  const std::string law = is_prefill ? "E11" : "E12";
  const bool is_state = failure.tensor != "output";
  if (is_state && (failure.law == "E6" || failure.law == "E7" || failure.law == "E8")) {
    failure.also.insert(failure.also.begin(), std::exchange(failure.law, law));
  } else {
    failure.also.push_back(is_state ? law : "E10");
  }
  if (failure.place.starts_with("slot ")) failure.place.replace(0, 4, "page");
  failure.message = failure.message_of_element();
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

bool expects_error(const json& test_case) {
  return test_case.contains("expect") && test_case["expect"].is_object() && test_case["expect"].value("status", "") == "error";
}

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

// Why the candidate's `supports` turned a call down, from the call's result; empty where it did not. Backend::run says so in these words.
std::string turned_down(const json& result, const Backend& candidate) {
  if (!result.is_object() || result.value("code", "") != "unsupported") return {};
  const std::string message = result.value("message", ""), words = fmt::format(": unsupported by backend {}: ", candidate.name());
  const std::size_t found = message.find(words);
  return found == std::string::npos ? "" : message.substr(found + words.size());
}

// A golden case on the candidate itself, without a judge. Answers the reason where the candidate supports no such call.
std::string run_golden(const json& test_case, const Backend& candidate, const Placement& placement, std::optional<Failure>& failure) {
  const Evaluated evaluated = evaluate(test_case, {placement.on(candidate), {}, {}});
  if (evaluated.ok) return {};
  const json result = json::parse(evaluated.text);
  for (const json& one : result.is_array() ? result : json::array({result})) {
    if (std::string reason = turned_down(one, candidate); !reason.empty()) return reason;
  }
  const std::string id = test_case.value("id", "");
  failure.emplace();
  failure->op = *ops_of(test_case).begin();
  failure->law = id.substr(0, id.find_first_of(":,"));
  failure->message = fmt::format("golden case \"{}\": {}", id, evaluated.text.substr(0, 400));
  return {};
}

// A program of exact calls on the candidate itself and on the reference, which must answer alike: captured steps, streams and copies are no
// calls that could be judged one by one. Answers as run_golden.
std::string run_beside(const json& test_case, const Backend& candidate, const Placement& placement, const Backend& reference, std::optional<Failure>& failure) {
  const json got = json::parse(evaluate(test_case, {placement.on(candidate), {}, {}}).text);
  for (const json& one : got) {
    if (std::string reason = turned_down(one, candidate); !reason.empty()) return reason;
    if (one.value("code", "") == "unsupported" && one.value("argument", "") == "capture") return one.value("message", "it captures no steps");
  }
  const json expected = json::parse(evaluate(test_case, {on_host_tensors(reference), {}, {}}).text);
  for (std::size_t n = 0; n < expected.size(); ++n) {
    if (got[n] == expected[n]) continue;
    failure.emplace();
    failure->op = "extend";
    failure->law = "A14";
    failure->expected = dump(expected[n]).substr(0, 400);
    failure->got = dump(got[n]).substr(0, 400);
    failure->message = fmt::format("step {} of the program, {}: expected {}, got {}", n, dump(test_case["steps"][n]).substr(0, 100), failure->expected, failure->got);
    break;
  }
  return {};
}

void count(RunReport& report, const CaseLine& line, const std::set<std::string>& laws, const std::optional<Failure>& failure) {
  FamilyCounts& family = report.families[line.family];
  ++family.cases;
  for (const std::string& law : laws) ++report.laws[law];
  if (!failure) return;
  ++family.failed;
  if (report.failures.size() < most_failures) report.failures.push_back({line.text(), *failure});
}

}  // namespace

std::optional<Failure> run_case(const CaseLine& line, const json& test_case, Judging& judging, RunReport* report) {
  std::optional<Failure> failure;
  const bool is_golden = line.family == "golden" && is_literal(line.number, judging.candidate());
  if (is_golden || line.family == "steps") {
    const std::string unsupported = is_golden ? run_golden(test_case, judging.candidate(), judging.placement(), failure)
                                              : run_beside(test_case, judging.candidate(), judging.placement(), judging.reference(), failure);
    if (report == nullptr) return failure;
    if (!unsupported.empty()) {
      ++report->families[line.family].unsupported;
      ++report->unsupported[unsupported];
    }
    count(*report, line, unsupported.empty() ? laws_of(test_case) : std::set<std::string>(), failure);
    return failure;
  }
  // Nobody reads the results' text: the calls have been judged.
  const Evaluated evaluated = evaluate(test_case, {{&judging.backend(), nullptr}, {}, [](const std::string&, const Tensor&) { return json(); }});
  const bool is_of_indices = line.family == "index" || test_case.value("op", "") == "index";
  if (is_of_indices && evaluated.ok && !expects_error(test_case)) judge_advance(test_case, judging);
  const std::vector<CallVerdict> verdicts = judging.take();
  std::set<std::string> turned_down_ops;
  for (const CallVerdict& verdict : verdicts) {
    if (verdict.status == CallVerdict::Status::failed && !failure) {
      failure = verdict.failure;
      name_pages(test_case, *failure);
    }
    if (report == nullptr) continue;
    ++report->families[line.family].calls;
    if (verdict.status == CallVerdict::Status::unsupported) {
      ++report->families[line.family].unsupported;
      ++report->unsupported[verdict.reason];
      turned_down_ops.insert(verdict.op);
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
  // What the candidate turned down exercised no law of it.
  if (report != nullptr) count(*report, line, laws_of(test_case, turned_down_ops), failure);
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

namespace {

// A run's cases in order and what they came to. Jobs take cases in order, and their results are added in that order.
class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options), families_(options.families.empty() ? case_families() : options.families), total_(options.count * families_.size()), running_(options.jobs) {}

  RunReport report() {
    {
      std::vector<std::jthread> others;
      for (std::size_t job = 1; job < options_.jobs; ++job) {
        try {
          others.emplace_back([this, job] { work(job); });
        } catch (const std::system_error&) {
          break;  // fewer jobs come to the same
        }
      }
      work(0);
    }
    if (raised_) std::rethrow_exception(raised_);
    report_.seconds = elapsed();
    return std::move(report_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void work(std::size_t job) {
    try {
      Judging judging(*options_.candidate, *options_.reference, options_.device);
      judging.classify_by(options_.classify);
      while (const std::optional<std::uint64_t> place = take()) add(*place, result_of(*place, judging, job));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!raised_) raised_ = std::current_exception();
      is_over_ = true;
    }
    const std::lock_guard lock(running_mutex_);
    running_[job].reset();
  }

  // The place of the next case, while there is one and the run is not to end.
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (is_over_ || next_ == total_) return std::nullopt;
    if (options_.interrupted && options_.interrupted()) is_over_ = report_.interrupted = true;
    if (options_.seconds > 0 && elapsed() > options_.seconds) is_over_ = true;
    return is_over_ ? std::nullopt : std::optional(next_++);
  }

  // Round by round over the families, so that a run cut short has seen all of them.
  std::optional<CaseLine> line_at(std::uint64_t place) const {
    const std::uint64_t n = place / families_.size();
    const std::string& family = families_[place % families_.size()];
    // A case of a large family takes as long as a hundred small ones.
    const bool is_large = family == "wide" || family == "far";
    if (is_large && n % cases_per_large_case != cases_per_large_case / 2) return std::nullopt;
    if (family == "golden" && n >= golden_cases().size()) return std::nullopt;
    return CaseLine{family, family == "golden" ? n : options_.first + (is_large ? n / cases_per_large_case : n)};
  }

  RunReport result_of(std::uint64_t place, Judging& judging, std::size_t job) {
    RunReport one;
    const std::optional<CaseLine> line = line_at(place);
    if (!line) return one;
    const json test_case = case_of(*line);
    if (!is_wanted(test_case, options_)) return one;
    if (options_.before) announce(*line, job);
    const bool failed = run_case(*line, test_case, judging, &one).has_value();
    if (failed && options_.confirms && !options_.confirms(test_case, *line)) {
      one.failures.clear();
      one.families[line->family].failed = 0;
    }
    return one;
  }

  void announce(const CaseLine& line, std::size_t job) {
    const std::lock_guard lock(running_mutex_);
    running_[job] = line;
    std::vector<CaseLine> lines;
    for (const std::optional<CaseLine>& running : running_) {
      if (running) lines.push_back(*running);
    }
    options_.before(lines);
  }

  // Results wait for those before them. Behind the failure that ends a run none counts.
  void add(std::uint64_t place, RunReport one) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(place, std::move(one));
    while (!is_decided_ && !waiting_.empty() && waiting_.begin()->first == added_) {
      const RunReport result = std::move(waiting_.extract(waiting_.begin()).mapped());
      report_.add(result);
      ++added_;
      if (!result.failures.empty() && options_.stop_at_failure) is_over_ = is_decided_ = true;
    }
  }

  const RunOptions& options_;
  const std::vector<std::string>& families_;
  const std::uint64_t total_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  std::mutex mutex_;  // over what follows
  std::uint64_t next_ = 0, added_ = 0;
  std::map<std::uint64_t, RunReport> waiting_;
  RunReport report_;
  bool is_over_ = false, is_decided_ = false;
  std::exception_ptr raised_;

  std::mutex running_mutex_;  // over what follows
  std::vector<std::optional<CaseLine>> running_;
};

}  // namespace

RunReport run_cases(const RunOptions& options) {
  if (options.jobs < 1) reject("jobs", "0", "1 or more");
  return Run(options).report();
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
