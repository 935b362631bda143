// The runner: lines, filters, counts, reports, and that a line is the case of the run.
#include "run/runner.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <limits>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "case/evaluate.h"
#include "fake_backend.h"
#include "honest/honest.h"
#include "random_cases.h"
#include "run/golden_cases.h"
#include "run/laws.h"

namespace {

using nlohmann::json;
using quire::Backend;
using quire::Call;
using quire::conformance::case_families;
using quire::conformance::case_of;
using quire::conformance::CaseLine;
using quire::conformance::change_element;
using quire::conformance::FakeBackend;
using quire::conformance::Judging;
using quire::conformance::laws_of;
using quire::conformance::ops_of;
using quire::conformance::run_case;
using quire::conformance::run_cases;
using quire::conformance::RunOptions;
using quire::conformance::RunReport;
using Strings = std::vector<std::string>;

const quire::Backend& reference() { return quire::backend("reference"); }

RunOptions options_for(const quire::Backend& candidate, Strings families, std::uint64_t count) {
  RunOptions options;
  options.candidate = &candidate;
  options.reference = &reference();
  options.families = std::move(families);
  options.count = count;
  return options;
}

// Everything of a report but its time.
json data_of(const RunReport& report) {
  json data;
  for (const auto& [family, counts] : report.families)
    data["families"][family] = {counts.cases, counts.calls, counts.failed, counts.unsupported};
  data["laws"] = report.laws;
  for (const auto& [op, errors] : report.errors) data["errors"][op] = {errors.counts, errors.largest};
  data["unsupported"] = report.unsupported;
  for (const auto& failure : report.failures) data["failures"].push_back({failure.line, failure.failure.message});
  data["interrupted"] = report.interrupted;
  return data;
}

// The lines of a run, in order.
Strings lines_of(RunOptions options) {
  Strings lines;
  options.before = [&](const std::vector<CaseLine>& running) { lines.push_back(running.at(0).text()); };
  run_cases(options);
  return lines;
}

// Changes the results of calls that carry a certain number of tokens, the same ones in every run.
void spoil_some(const Call& call) {
  if (call.op() == QUIRE_OP_EXTEND && call.tensor("seen")->shape[0] == 2 && call.tensor("seen")->shape[1] > 0) {
    const quire_tensor& seen = *call.tensor("seen");
    if (std::all_of(seen.shape, seen.shape + seen.rank, [](std::int64_t axis) { return axis > 0; })) change_element(call, "seen", 0);
  }
}

}  // namespace

TEST_CASE("lines: every family's line is read back as it was written") {
  CHECK(case_families().size() == quire_tests::families().size() + 6);
  for (const std::string& family : case_families()) {
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{17}, std::numeric_limits<std::uint64_t>::max()}) {
      const CaseLine line{family, number};
      CHECK(line.text() == "1:" + family + ":" + std::to_string(number));
      const CaseLine read = CaseLine::parse(line.text());
      CHECK(read.family == family);
      CHECK(read.number == number);
    }
  }
}

TEST_CASE("lines: another form is refused, by name") {
  for (const char* text : {"",
                           "1",
                           "1:extend",
                           "1:extend:",
                           "1:extend:x",
                           "1:extend:-1",
                           "1:extend:+1",
                           "1:extend: 1",
                           "1:extend:1 ",
                           "1:extend:1:2",
                           "1:extend:1.5",
                           "1:extend:0x1",
                           "1:extend:18446744073709551616",
                           "1::1",
                           "1:nothing:1",
                           "2:extend:1",
                           "extend:1",
                           ":extend:1",
                           "01:extend:1",
                           "1:Extend:1",
                           " 1:extend:1"}) {
    try {
      CaseLine::parse(text);
      FAIL("\"", text, "\" was read");
    } catch (const quire::Error& error) {
      CHECK(error.argument() == "case");
      CHECK(std::string(error.what()).find("1:FAMILY:NUMBER") != std::string::npos);
    }
  }
}

TEST_CASE("cases: a part of a family has the feature that it is named for, and is the family's case") {
  const auto builds = [](const json& test_case, const char* builder) {
    if (!test_case["index"].contains("then")) return false;
    const json& then = test_case["index"]["then"];
    return std::any_of(then.begin(), then.end(), [&](const json& step) { return step.contains(builder); });
  };
  for (std::uint64_t n = 0; n < 20; ++n) {
    CHECK(builds(case_of({"drafts", n}), "draft"));
    CHECK((case_of({"packings", n})["index"].contains("packed") || case_of({"packings", n})["index"].contains("whole")));
    const json features = case_of({"features", n});
    CHECK(builds(features, "window") + builds(features, "select") + builds(features, "every") >= 2);
    CHECK(case_of({"extend", n}) == quire_tests::random_case("extend", n));
    CHECK(case_of({"drafts", n}) == case_of({"drafts", n}));
    CHECK(case_of({"drafts", n}) != case_of({"drafts", n + 1}));
  }
  CHECK_THROWS_WITH(case_of({"golden", 1000000}), doctest::Contains("golden cases 0 to "));
}

TEST_CASE("runs: cases of each family one after another, numbers from the first on") {
  RunOptions options = options_for(reference(), {"extend", "check"}, 3);
  options.first = 40;
  CHECK(lines_of(options) == Strings{"1:extend:40", "1:check:40", "1:extend:41", "1:check:41", "1:extend:42", "1:check:42"});
  const RunReport report = run_cases(options);
  CHECK(report.families.at("extend").cases == 3);
  CHECK(report.families.at("check").cases == 3);
  CHECK(report.families.at("check").calls == 0);  // works on the host, no backend is asked
  CHECK(report.total().cases == 6);
  CHECK(report.total().failed == 0);
}

TEST_CASE("runs: large families come once in 64, golden cases from the first on whatever the seed") {
  RunOptions options = options_for(reference(), {"wide"}, 160);
  options.first = 7;
  CHECK(lines_of(options) == Strings{"1:wide:7", "1:wide:8"});
  options = options_for(reference(), {"golden"}, 2);
  options.first = 7;
  CHECK(lines_of(options) == Strings{"1:golden:0", "1:golden:1"});
}

TEST_CASE("runs: only cases that meet every filter, and all of those") {
  struct Filter {
    Strings laws, ops, dtypes;
  };
  const Filter filters[] = {
      {{"B5"}, {}, {}}, {{}, {"mask", "positions"}, {}}, {{}, {}, {"bf16"}}, {{"C6", "E7"}, {"extend", "gdn_prefill"}, {"f16", "f8_e5m2"}}};
  const Strings families = {"index", "extend", "gdn_prefill", "programs"};
  const auto meets = [](const std::set<std::string>& has, const Strings& wanted) {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) { return has.count(one) > 0; });
  };
  for (const Filter& filter : filters) {
    RunOptions options = options_for(reference(), families, 60);
    options.laws = filter.laws;
    options.ops = filter.ops;
    options.dtypes = filter.dtypes;
    Strings wanted;
    for (std::uint64_t n = 0; n < 60; ++n) {
      for (const std::string& family : families) {
        const json test_case = quire_tests::random_case(family, n);
        if (meets(laws_of(test_case), filter.laws) && meets(ops_of(test_case), filter.ops) &&
            meets(quire::conformance::dtypes_of(test_case), filter.dtypes)) {
          wanted.push_back("1:" + family + ":" + std::to_string(n));
        }
      }
    }
    CHECK_FALSE(wanted.empty());
    CHECK(wanted.size() < 60 * families.size());
    CHECK(lines_of(options) == wanted);
  }
}

TEST_CASE("runs: nothing to run is no case at all") {
  RunOptions options = options_for(reference(), {"slots"}, 20);
  options.ops = {"extend"};
  CHECK(run_cases(options).total().cases == 0);
  CHECK(run_cases(options).missing_laws() == quire::conformance::all_laws());
  CHECK(run_cases(options_for(reference(), {"slots"}, 0)).total().cases == 0);
}

TEST_CASE("runs: the same run gives the same report, and each failure's line the same failure") {
  FakeBackend fake;
  fake.after = spoil_some;
  const RunOptions options = options_for(fake.backend(), {"extend", "programs", "attend"}, 80);
  const RunReport report = run_cases(options);
  CHECK(report.total().failed > 3);
  CHECK(report.total().failed < report.total().cases);
  CHECK(data_of(report) == data_of(run_cases(options)));
  REQUIRE(report.failures.size() == static_cast<std::size_t>(report.total().failed));
  for (const auto& failure : report.failures) {
    const CaseLine line = CaseLine::parse(failure.line);
    Judging judging(fake.backend(), reference());
    const auto again = run_case(line, case_of(line), judging, nullptr);
    REQUIRE(again.has_value());
    CHECK(again->message == failure.failure.message);
    CHECK_FALSE(passes(line, case_of(line), fake.backend(), reference()));
    CHECK(passes(line, case_of(line), reference(), reference()));
  }
}

TEST_CASE("runs: what is not supported is counted as that, never as failed, and exercises no law") {
  FakeBackend fake;
  fake.supports = [](quire_op op, const void*) { return op == QUIRE_OP_ATTEND ? QUIRE_UNSUPPORTED : QUIRE_OK; };
  const RunReport report = run_cases(options_for(fake.backend(), {"extend", "attend", "check"}, 50));
  CHECK(report.total().failed == 0);
  CHECK(report.families.at("attend").cases == 50);
  CHECK(report.families.at("attend").unsupported == report.families.at("attend").calls);
  CHECK(report.families.at("attend").calls > 0);
  CHECK(report.families.at("extend").unsupported == 0);
  CHECK(report.unsupported == std::map<std::string, std::int64_t>{{"planted", report.families.at("attend").calls}});
  CHECK(report.laws.count("D1") == 0);
  CHECK(report.laws.count("C1") == 1);
  CHECK(report.laws.count("F3") == 1);
  CHECK(report.errors.empty());
  const Strings missing = report.missing_laws();
  CHECK(std::count(missing.begin(), missing.end(), "D1") == 1);
  CHECK(std::count(missing.begin(), missing.end(), "C1") == 0);
}

TEST_CASE("runs: golden cases of what is not supported are counted as that too") {
  FakeBackend fake;
  fake.supports = [](quire_op op, const void*) { return op == QUIRE_OP_ATTEND ? QUIRE_UNSUPPORTED : QUIRE_OK; };
  const RunReport report = run_cases(options_for(fake.backend(), {"golden"}, 1000000));
  CHECK(report.total().failed == 0);
  CHECK(report.total().unsupported > 30);
  CHECK(report.laws.count("D1") == 0);
  CHECK(report.unsupported.size() == 1);
  // A lie is a failure.
  fake.supports = nullptr;
  fake.run = [](quire_op op, const void* args) {
    return op == QUIRE_OP_ATTEND ? QUIRE_UNSUPPORTED : reference().table().run(nullptr, op, args, nullptr, 0);
  };
  const RunReport lied = run_cases(options_for(fake.backend(), {"golden"}, 1000000));
  CHECK(lied.total().failed > 30);
  CHECK(lied.total().unsupported == 0);
}

TEST_CASE("runs: a wrong golden result is told by the law of its id") {
  FakeBackend fake;
  fake.after = [](const Call& call) {
    if (call.op() == QUIRE_OP_MASK) change_element(call, "mask", 0);
  };
  RunOptions options = options_for(fake.backend(), {"golden"}, 1000000);
  options.ops = {"mask"};
  const RunReport report = run_cases(options);
  CHECK(report.total().failed > 0);
  for (const auto& failure : report.failures) {
    const CaseLine line = CaseLine::parse(failure.line);
    if (!quire::conformance::is_literal(line.number, fake.backend())) continue;
    const json test_case = case_of(line);
    CHECK(test_case["id"].get<std::string>().starts_with(failure.failure.law));
    CHECK(failure.failure.op == "mask");
    CHECK(failure.failure.message.starts_with("golden case \"" + failure.failure.law));
  }
}

TEST_CASE("runs: random golden cases, which expect float64's numbers, are judged beside the reference") {
  const Backend honest(quire::conformance::honest_backend(), "(honest)");
  std::size_t hand_made = 0;
  while (hand_made < quire::conformance::golden_cases().size() && quire::conformance::is_literal(hand_made, reference())) ++hand_made;
  const std::size_t all = quire::conformance::golden_cases().size();
  // Twelve files of twenty-five.
  CHECK(all == hand_made + 300);
  std::set<std::string> ops;
  int off = 0;  // by float32's roundings
  for (std::size_t n = hand_made; n < all; ++n) {
    const CaseLine line{"golden", n};
    const json test_case = case_of(line);
    CHECK_FALSE(quire::conformance::is_literal(n, reference()));
    CHECK_FALSE(quire::conformance::is_literal(n, honest));
    ops.merge(ops_of(test_case));
    CHECK_MESSAGE(passes(line, test_case, honest, reference()), line.text());
    CHECK_MESSAGE(passes(line, test_case, reference(), reference()), line.text());
    off += !quire::conformance::evaluate(test_case, {{&honest, nullptr}, {}, {}}).ok;
  }
  CHECK(off > 20);
  CHECK(ops.size() == 14);
  // Exact where the laws are: one more in a byte, and every extend fails that has an element.
  FakeBackend fake;
  fake.after = spoil_some;
  RunOptions options = options_for(fake.backend(), {"golden"}, all);
  options.ops = {"extend"};
  const RunReport report = run_cases(options);
  CHECK(std::any_of(report.failures.begin(), report.failures.end(), [&](const auto& failure) {
    return CaseLine::parse(failure.line).number >= hand_made && failure.failure.what == "must be equal bit for bit" &&
           failure.failure.tensor == "seen";
  }));
}

TEST_CASE("runs: hand-made golden cases that float32 can't reach are judged beside the reference too") {
  const Backend honest(quire::conformance::honest_backend(), "(honest)");
  int beside = 0;
  for (std::size_t n = 0; quire::conformance::is_literal(n, reference()); ++n) {
    const CaseLine line{"golden", n};
    if (quire::conformance::is_literal(n, honest)) continue;
    ++beside;
    CHECK(case_of(line)["id"].get<std::string>().find("(float64)") != std::string::npos);
    CHECK(passes(line, case_of(line), honest, reference()));
    FakeBackend fake;
    fake.run = [](quire_op, const void*) { return QUIRE_OK; };
    CHECK_FALSE(passes(line, case_of(line), fake.backend(), reference()));
  }
  CHECK(beside > 0);
}

TEST_CASE("runs: a refusal that does not come, or names another argument, is a failure of the law that asks for it") {
  const json accepted = json::parse(
      R"({"op":"gdn_decode_slots","id":"page_size: not a multiple of 64","page_indices":[1],"page_indptr":[0,1],"last_page_len":[2],"page_size":64})");
  Judging judging(reference(), reference());
  const auto failure = run_case({"bad", 0}, accepted, judging, nullptr);
  REQUIRE(failure.has_value());
  CHECK(failure->law == "E13");
  CHECK(failure->expected == "an error that names page_size");
  json refused = accepted;
  refused["page_size"] = 65;
  CHECK_FALSE(run_case({"bad", 0}, refused, judging, nullptr).has_value());
  refused["id"] = "last_page_len: something else";
  CHECK(run_case({"bad", 0}, refused, judging, nullptr).has_value());
}

TEST_CASE("runs: an error where none belongs is a failure") {
  Judging judging(reference(), reference());
  const auto failure =
      run_case({"extend", 0}, json::parse(R"({"op":"mask","index":{"pos":[[0]],"table":[[0]],"row":[0,0]}})"), judging, nullptr);
  REQUIRE(failure.has_value());
  CHECK(failure->law == "ABI");
}

TEST_CASE("runs: they end at the first failure, at a doubt that is confirmed, when they are interrupted, when time is up") {
  FakeBackend fake;
  fake.after = spoil_some;
  RunOptions options = options_for(fake.backend(), {"extend"}, 200);
  const RunReport whole = run_cases(options);
  REQUIRE(whole.failures.size() > 2);
  options.stop_at_failure = true;
  const RunReport stopped = run_cases(options);
  CHECK(stopped.failures.size() == 1);
  CHECK(stopped.failures[0].line == whole.failures[0].line);
  CHECK(stopped.total().cases == static_cast<std::int64_t>(CaseLine::parse(whole.failures[0].line).number) + 1);
  // Only the second failure counts.
  int asked = 0;
  options.confirms = [&](const json&, const CaseLine&) { return ++asked == 2; };
  const RunReport confirmed = run_cases(options);
  CHECK(confirmed.failures.size() == 1);
  CHECK(confirmed.failures[0].line == whole.failures[1].line);
  CHECK(confirmed.total().failed == 1);
  options.confirms = [](const json&, const CaseLine&) { return false; };
  CHECK(run_cases(options).total().failed == 0);
  CHECK(run_cases(options).total().cases == 200);

  options = options_for(reference(), {"extend"}, 200);
  int looked = 0;
  options.interrupted = [&] { return ++looked > 5; };
  const RunReport interrupted = run_cases(options);
  CHECK(interrupted.interrupted);
  CHECK(interrupted.total().cases == 5);
  options.interrupted = nullptr;
  options.seconds = 1e-9;
  const RunReport timed = run_cases(options);
  CHECK_FALSE(timed.interrupted);
  CHECK(timed.total().cases < 200);
}

TEST_CASE("jobs: any number of them gives the same report") {
  FakeBackend fake;
  fake.after = spoil_some;
  RunOptions options = options_for(fake.backend(), {}, 40);
  const json alone = data_of(run_cases(options));
  CHECK(alone["failures"].size() > 1);
  for (const std::size_t jobs : {2, 3, 8}) {
    options.jobs = jobs;
    CHECK(data_of(run_cases(options)) == alone);
  }
  // So does a run that ends at its first failure, and one whose doubts are confirmed.
  options.stop_at_failure = true;
  const json stopped = data_of(run_cases(options));
  options.jobs = 1;
  CHECK(data_of(run_cases(options)) == stopped);
  CHECK(stopped["failures"].size() == 1);
  options.stop_at_failure = false;
  options.confirms = [](const json&, const CaseLine& line) { return line.number % 2 == 0; };
  const json confirmed = data_of(run_cases(options));
  CHECK(confirmed["failures"].size() < alone["failures"].size());
  options.jobs = 4;
  CHECK(data_of(run_cases(options)) == confirmed);
}

TEST_CASE("jobs: a case is among those that are told before it runs, and each is told once as the newest") {
  std::mutex mutex;
  std::vector<std::string> running;  // as told last
  std::set<std::string> told;
  FakeBackend fake;
  std::atomic<int> unknown{0};
  // A call of a case of which nothing was told would be one that a crash does not lead to.
  fake.before = [&](const Call& call) {
    const std::lock_guard lock(mutex);
    const std::string family = call.op() == QUIRE_OP_EXTEND ? "1:extend:" : "1:attend:";
    if (std::none_of(running.begin(), running.end(), [&](const std::string& line) { return line.starts_with(family); })) ++unknown;
  };
  RunOptions options = options_for(fake.backend(), {"extend", "attend"}, 60);
  options.jobs = 3;
  std::size_t most = 0, calls = 0;
  options.before = [&](const std::vector<CaseLine>& lines) {
    const std::lock_guard lock(mutex);
    running.clear();
    for (const CaseLine& line : lines) running.push_back(line.text());
    told.insert(running.begin(), running.end());
    most = std::max(most, lines.size());
    ++calls;
  };
  const RunReport report = run_cases(options);
  CHECK(unknown == 0);
  CHECK(report.total().cases == 120);
  CHECK(told.size() == 120);
  CHECK(calls == 120);
  CHECK(most <= 3);
}

TEST_CASE("jobs: where a case ends the process, the last line that was told leads to it") {
  // Ends the process at a store of three lanes.
  const auto is_deadly = [](const Call& call) { return call.op() == QUIRE_OP_EXTEND && call.tensor("seen")->shape[0] == 3; };
  FakeBackend fake;
  RunOptions options = options_for(fake.backend(), {"attend", "extend"}, 1000);
  options.jobs = 3;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    fake.before = [&](const Call& call) {
      if (is_deadly(call)) _exit(7);
    };
    options.before = [&](const std::vector<CaseLine>& running) {
      std::string text;
      for (const CaseLine& line : running) text += line.text() + " ";
      text += "\n";
      if (write(ends[1], text.data(), text.size()) < 0) _exit(8);
    };
    run_cases(options);
    _exit(0);
  }
  close(ends[1]);
  std::string told;
  char buffer[4096];
  for (ssize_t bytes = 0; (bytes = read(ends[0], buffer, sizeof buffer)) > 0;) told.append(buffer, static_cast<std::size_t>(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 7);
  told.erase(told.size() - 1);
  std::istringstream last(told.substr(told.rfind('\n') + 1));
  bool deadly = false;
  fake.before = [&](const Call& call) { deadly |= is_deadly(call); };
  for (std::string text; last >> text;) {
    Judging judging(fake.backend(), reference());
    run_case(CaseLine::parse(text), case_of(CaseLine::parse(text)), judging, nullptr);
  }
  CHECK(deadly);
}

TEST_CASE("jobs: an interrupt, and what a job raises, ends them all") {
  RunOptions options = options_for(reference(), {"extend"}, 100000);
  options.jobs = 4;
  std::atomic<int> looked{0};
  options.interrupted = [&] { return ++looked > 20; };
  const RunReport report = run_cases(options);
  CHECK(report.interrupted);
  CHECK(report.total().cases == 20);
  options.interrupted = nullptr;
  options.before = [](const std::vector<CaseLine>& running) {
    for (const CaseLine& line : running) {
      if (line.number == 30) throw std::runtime_error("raised");
    }
  };
  CHECK_THROWS_WITH(run_cases(options), "raised");
  options.jobs = 0;
  CHECK_THROWS_WITH(run_cases(options), doctest::Contains("jobs"));
}

TEST_CASE("reports: a hundred failures are kept, all are counted") {
  FakeBackend fake;
  fake.run = [](quire_op, const void*) { return QUIRE_INTERNAL; };
  const RunReport report = run_cases(options_for(fake.backend(), {"slots"}, 130));
  CHECK(report.total().failed == 130);
  CHECK(report.failures.size() == 100);
  CHECK(report.failures.back().line == "1:slots:99");
}

TEST_CASE("reports: sums by hand") {
  RunReport one, other;
  one.families["a"] = {3, 5, 1, 2};
  one.laws = {{"A1", 2}, {"B1", 1}};
  one.errors["attend"].add(0.3);
  one.unsupported = {{"no", 2}};
  one.failures.push_back({"1:a:0", {}});
  other.families["a"] = {10, 20, 30, 40};
  other.families["b"] = {1, 1, 1, 1};
  other.laws = {{"A1", 5}, {"C1", 7}};
  other.errors["attend"].add(0.3);
  other.errors["gdn_decode"].add(2);
  other.unsupported = {{"no", 1}, {"never", 4}};
  other.failures.assign(150, {"1:b:0", {}});
  one.add(other);
  CHECK(one.families.at("a").cases == 13);
  CHECK(one.families.at("a").calls == 25);
  CHECK(one.families.at("a").failed == 31);
  CHECK(one.families.at("a").unsupported == 42);
  CHECK(one.total().cases == 14);
  CHECK(one.total().calls == 26);
  CHECK(one.total().failed == 32);
  CHECK(one.total().unsupported == 43);
  CHECK(one.laws == std::map<std::string, std::int64_t>{{"A1", 7}, {"B1", 1}, {"C1", 7}});
  CHECK(one.errors.at("attend").counts[3] == 2);
  CHECK(one.errors.at("gdn_decode").counts[6] == 1);
  CHECK(one.unsupported == std::map<std::string, std::int64_t>{{"no", 3}, {"never", 4}});
  CHECK(one.failures.size() == 100);
  CHECK(one.failures[0].line == "1:a:0");
  CHECK(one.failures[1].line == "1:b:0");
  const Strings missing = one.missing_laws();
  CHECK(missing.size() == quire::conformance::all_laws().size() - 3);
  CHECK(missing.front() == "A2");
  CHECK(std::count(missing.begin(), missing.end(), "B1") == 0);
}
