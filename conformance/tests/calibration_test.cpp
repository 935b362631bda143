// Calibration: counting by regime, the report's numbers, the names of honest implementations, and that narrow ones are honest.
#include <doctest/doctest.h>
#include <quire/error.h>
#include <quire/registry.h>

#include <algorithm>
#include <set>

#include "honest/arithmetic.h"
#include "honest/backend.h"
#include "run/calibration_report.h"

namespace {

using quire::conformance::CalibrationReport;
using quire::conformance::CallVerdict;
using quire::conformance::ErrorDistribution;
using quire::conformance::HonestResult;
using quire::conformance::HonestRun;
using quire::conformance::RegimeTable;
using quire::conformance::RunReport;

CallVerdict verdict_of(const std::string& op, const std::vector<double>& all, const std::vector<double>& shares,
                       std::vector<std::string> regimes) {
  CallVerdict verdict;
  verdict.op = op;
  for (const double ratio : all) verdict.errors.add(ratio);
  for (const double share : shares) verdict.shares.add(share);
  verdict.regimes = std::move(regimes);
  return verdict;
}

// Three calls of one contract and one of another.
CalibrationReport small_report() {
  HonestResult first{"token-direct", "float32", {}}, second{"bf16-token-direct", "bf16", {}};
  add_call(first.report.regimes, verdict_of("gdn_decode", {0.005, 0.2, 0.9}, {0.005, 0.2}, {"decay: none", "beta: up to 1"}));
  add_call(first.report.regimes, verdict_of("gdn_decode", {0.3}, {0.3}, {"decay: strong", "beta: up to 1"}));
  add_call(first.report.regimes, verdict_of("attend", {0.01, 0.02}, {}, {"columns: up to 1"}));
  add_call(first.report.regimes, verdict_of("extend", {}, {}, {}));
  first.report.families["decode"] = {2, 2, 0, 0};
  first.report.families["attend"] = {1, 1, 0, 0};
  add_call(second.report.regimes, verdict_of("gdn_decode", {1.5}, {1.5}, {"decay: none", "beta: up to 2"}));
  second.report.families["decode"] = {1234, 1240, 1, 0};
  second.report.failures.push_back({"1:gdn_decode:7", {}});
  second.report.failures[0].failure.message = "gdn_decode output is off";
  CalibrationReport report;
  report.command = "quire conformance --honest";
  report.date = "2000-01-02";
  report.machine = "a machine";
  report.count = 7;
  report.add(first);
  report.add(second);
  return report;
}

bool has_line(const std::string& text, const std::string& line) { return ("\n" + text).find("\n" + line + "\n") != std::string::npos; }

}  // namespace

TEST_CASE("calibration: regimes count each call once per kind and add up") {
  const CalibrationReport report = small_report();
  const RegimeTable& table = report.contracts.at("float32");
  CHECK(table.size() == 2);  // a call of no class counts nowhere
  const auto& decode = table.at("gdn_decode");
  CHECK(decode.at("all").calls == 2);
  CHECK(decode.at("all").all.total() == 4);
  CHECK(decode.at("all").shares.counts == std::array<std::int64_t, 7>{1, 0, 1, 1, 0, 0, 0});
  CHECK(decode.at("all").all.largest == 0.9);
  CHECK(decode.at("all").shares.largest == 0.3);
  CHECK(decode.at("beta: up to 1").calls == 2);
  CHECK(decode.at("decay: none").all.total() + decode.at("decay: strong").all.total() == decode.at("all").all.total());
  CHECK(decode.at("decay: none").calls + decode.at("decay: strong").calls == decode.at("all").calls);
  CHECK(report.total().cases == 1237);
  CHECK(report.total().calls == 1243);
  CHECK(report.total().failed == 1);
}

TEST_CASE("calibration: the report as Markdown") {
  const std::string text = calibration_markdown(small_report());
  CHECK(has_line(text, "    quire conformance --honest"));
  CHECK(has_line(text, "**1,237 cases, 1,243 calls: 1 false alarms.**"));
  CHECK(has_line(text, "- bf16-token-direct: gdn_decode output is off (case 1:gdn_decode:7)"));
  CHECK(has_line(text, "| bf16-token-direct | bf16 | 1,234 | 1,240 | 1 | 0.0 |"));
  CHECK(has_line(text, "| float32 | 2 | 4 | 0.900 | 3 | 33.3 | 0 | 33.3 | 33.3 | 0 | 0 | 0 | 0.300 |"));
  CHECK(has_line(text, "| bf16 | 1 | 1 | 1.500 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 100.0 | 1.500 |"));
  CHECK(has_line(text, "| decay: none | 0.200 | 1.500 |"));
  CHECK(has_line(text, "| decay: strong | 0.300 | - |"));
  CHECK(has_line(text, "| float32 | columns: up to 1 | 1 | 2 | 0.020 | 0 | - | - | - | - | - | - | - | - |"));
  CHECK(text.find("interrupted") == std::string::npos);
  CalibrationReport cut = small_report();
  cut.interrupted = true;
  CHECK(calibration_markdown(cut).find("interrupted") != std::string::npos);
}

TEST_CASE("calibration: the report as JSON") {
  const nlohmann::json result = calibration_json(small_report());
  CHECK(result["cases"] == 1237);
  CHECK(result["failed"] == 1);
  CHECK(result["interrupted"] == false);
  CHECK(result["semantics"] == QUIRE_SEMANTICS_VERSION);
  CHECK(result["ways"].size() == 2);
  const nlohmann::json& decode = result["errors"]["gdn_decode"];
  CHECK(decode["float32"]["all"]["calls"] == 2);
  CHECK(decode["float32"]["all"]["all"]["elements"] == 4);
  CHECK(decode["float32"]["all"]["shares"]["counts"]["<=0.25"] == 1);
  CHECK(decode["bf16"]["decay: none"]["shares"]["counts"][">1"] == 1);
  for (const auto& [contract, regimes] : decode.items()) {
    for (const auto& [regime, errors] : regimes.items()) {
      for (const char* part : {"all", "shares"}) {
        std::int64_t sum = 0;
        for (const auto& count : errors[part]["counts"]) sum += count.get<std::int64_t>();
        CHECK(sum == errors[part]["elements"]);
      }
    }
  }
}

TEST_CASE("calibration: shares that are not none are not shown as none") {
  CalibrationReport report;
  HonestResult result{"token-direct", "float32", {}};
  CallVerdict verdict = verdict_of("attend", {}, {}, {"columns: up to 1"});
  verdict.errors.counts = verdict.shares.counts = {999'999, 0, 0, 0, 1, 0, 0};
  verdict.errors.largest = verdict.shares.largest = 0.6;
  add_call(result.report.regimes, verdict);
  report.add(result);
  CHECK(has_line(calibration_markdown(report),
                 "| float32 | 1 | 1,000,000 | 0.600 | 1,000,000 | 100.0 | 0 | 0 | 0 | <0.01 | 0 | 0 | 0.600 |"));
}

TEST_CASE("calibration: names of honest implementations") {
  const std::vector<std::string> names = quire::conformance::honest_names(), contracts = quire::conformance::honest_contracts();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(contracts == std::vector<std::string>{"float32", "tf32", "half", "bf16", "bf16-stored", "half-stored", "bf16-bf16-stored"});
  CHECK(names[0] == "token-direct");
  CHECK(std::count(names.begin(), names.end(), "chunked-64-logs-split-fma-reversed") == 1);
  CHECK(std::count(names.begin(), names.end(), "bf16-bf16-stored-token-online") == 1);
  for (const std::string& name : names) CHECK(std::count(contracts.begin(), contracts.end(), name) == 0);
  HonestRun run;
  run.names = {"nonsense"};
  try {
    run_honest(run);
    FAIL("no error");
  } catch (const quire::Error& error) {
    const std::string text = error.what();
    CHECK(text.find("honest: \"nonsense\"; allowed: ") == 0);
  }
}

TEST_CASE("calibration: runs of chosen ways have the cases they were counted to have, and repeat") {
  HonestRun run;
  run.names = {"half-stored", "token-direct"};
  run.count = 70;
  std::vector<HonestResult> results = run_honest(run), again = run_honest(run);
  REQUIRE(results.size() == 3);
  CHECK(results[0].name == "token-direct");
  CHECK(results[1].contract == "half-stored");
  std::uint64_t cases = 0;
  for (std::size_t n = 0; n < results.size(); ++n) {
    const RunReport& report = results[n].report;
    cases += static_cast<std::uint64_t>(report.total().cases);
    CHECK(report.total().failed == 0);
    const auto& decode = report.regimes.at("gdn_decode");
    CHECK(decode.at("all").calls > 0);
    CHECK(decode.at("all").all.total() == decode.at("beta: up to 1").all.total() + decode.at("beta: up to 2").all.total());
    CHECK(decode.at("all").shares.counts == again[n].report.regimes.at("gdn_decode").at("all").shares.counts);
  }
  CHECK(cases == honest_case_count(run));
}

namespace {

using Options = quire::conformance::HonestOptions;
using Format = Options::Format;

Options narrow(Format products, Format stored) {
  Options options;
  options.products = products;
  options.stored = stored;
  return options;
}
const Options narrow_options[] = {narrow(Format::tf32, Format::float32), narrow(Format::half, Format::float32),
                                  narrow(Format::bf16, Format::float32), narrow(Format::float32, Format::half),
                                  narrow(Format::float32, Format::bf16)};

// Narrow arithmetic that claims to be float32.
template <std::size_t N>
struct Dishonest {
  static quire_status describe(quire_backend_info* info) { return quire::conformance::honest::describe_as("dishonest", "narrower than it says", info); }
  static quire_status run(quire_stream*, quire_op op, const void* args, void*, std::size_t) {
    return quire::conformance::honest_run(op, args, narrow_options[N]);
  }
  static quire_status contract(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) {
    return quire::conformance::honest::contract_of({}, op, contract);
  }
};
template <std::size_t N>
quire_backend_table dishonest() {
  using Own = Dishonest<N>;
  return quire::conformance::honest::host_table<Own::describe, quire::conformance::honest::supports_host, Own::run, Own::contract>();
}

bool fails_somewhere(const quire_backend_table& table, const std::string& family) {
  const quire::Backend candidate(&table, "(dishonest)");
  for (std::uint64_t number = 0; number < 60; ++number) {
    const quire::conformance::CaseLine line{family, number};
    if (!passes(line, case_of(line), candidate, quire::backend("reference"))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("calibration: narrow ways do compute narrowly: under a float32 contract they fail") {
  const quire_backend_table tables[] = {dishonest<0>(), dishonest<1>(), dishonest<2>(), dishonest<3>(), dishonest<4>()};
  for (std::size_t n = 0; n < 5; ++n) {
    for (const char* family : {"attend", "gdn_prefill", "gdn_decode", "verify"})
      CHECK_MESSAGE(fails_somewhere(tables[n], family), n, " ", family);
  }
}

TEST_CASE("calibration: contracts say what the ways do") {
  Options way = narrow(Format::bf16, Format::half);
  way.recurrence = Options::Recurrence::chunked;
  way.chunk_length = 16;
  way.decay_from_log_sums = true;
  const quire_contract prefill = quire::conformance::honest_contract(way, QUIRE_OP_GDN_PREFILL),
                       decode = quire::conformance::honest_contract(way, QUIRE_OP_GDN_DECODE);
  CHECK(prefill.u_product == 0x1p-8);
  CHECK(prefill.u_store == 0x1p-11);
  CHECK(prefill.u_accumulate == 0x1p-24);
  CHECK(prefill.chunk_length == 16);
  CHECK(prefill.decay_from_log_sums == 1);
  CHECK(decode.chunk_length == 1);
  CHECK(decode.decay_from_log_sums == 0);
}

TEST_CASE("calibration: roundings of narrow formats") {
  using quire::conformance::honest::rounded_to;
  CHECK(rounded_to(Format::tf32, 1 + 0x1p-11F) == 1.0F);           // a tie, to even
  CHECK(rounded_to(Format::tf32, 1 + 0x1.8p-10F) == 1 + 0x1p-9F);  // a tie, to even
  CHECK(rounded_to(Format::tf32, 1 + 0x1.02p-11F) == 1 + 0x1p-10F);
  CHECK(rounded_to(Format::tf32, 0x1.004p-120F) == 0x1.004p-120F);  // float32's exponents
  CHECK(rounded_to(Format::bf16, -1 - 0x1.02p-8F) == -1 - 0x1p-7F);
  CHECK(rounded_to(Format::bf16, 3e38F) == 0x1.c4p127F);
  CHECK(rounded_to(Format::half, 0x1p-25F) == 0.0F);  // half of its least denormal, to even
  CHECK(rounded_to(Format::half, 0x1.8p-25F) == 0x1p-24F);
  CHECK(rounded_to(Format::half, 65504.0F) == 65504.0F);
  CHECK(rounded_to(Format::half, 1e6F) == 0x1.e84p19F);  // past its largest: eleven bits
  CHECK(rounded_to(Format::float32, 0.1F) == 0.1F);
}

TEST_CASE("calibration: narrow ways are held to no golden number, and to every other golden case") {
  HonestRun run;
  run.names = {"token-direct", "tf32-token-direct", "half-chunked-64-logs-online", "bf16-stored-token-direct"};
  run.families = {"golden"};
  run.count = 100'000;
  for (const HonestResult& result : run_honest(run)) {
    CHECK(result.report.total().failed == 0);
    CHECK(result.report.total().cases > 100);
  }
}
