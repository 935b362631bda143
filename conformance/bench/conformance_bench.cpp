// Where a conformance run's time goes: each step of a case by family, in cases per second on one thread.
//
// generate, read (JSON to tensors, checks, results without their text), reference, tolerance (float32's contract), candidate (an honest
// float32 backend, twice), judge (all four of a call's steps after reading, with the copies and the comparison), laws, whole (a run).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "case/evaluate.h"
#include "error_model.h"
#include "honest/honest.h"
#include "judge/sandbox.h"
#include "run/laws.h"
#include "run/runner.h"

namespace {

using nlohmann::json;
using quire::Backend;
using quire::Call;
using quire::conformance::CaseLine;
using quire::conformance::Sandbox;

constexpr std::uint64_t cases = 361;  // the generator lays its pairs of features out over so many

const Backend& reference() { return quire::backend("reference"); }
const Backend& honest() {
  static const Backend backend(quire::conformance::honest_backend(), "(honest)");
  return backend;
}

// Calls of cases on memory of their own, as a backend gets them.
std::vector<std::unique_ptr<Sandbox>>* recorded = nullptr;

// Keeps every call before the reference runs it, so that a program's later steps find what they need.
const Backend& recorder() {
  static const quire_backend_table table = [] {
    quire_backend_table made = reference().table();
    made.run = [](quire_stream* stream, quire_op op, const void* args, void* workspace, std::size_t bytes) {
      recorded->push_back(std::make_unique<Sandbox>(op, args, std::byte{0}));
      return reference().table().run(stream, op, args, workspace, bytes);
    };
    return made;
  }();
  static const Backend backend(&table, "(recorder)");
  return backend;
}

// Runs nothing: what is left is reading and checking.
const Backend& idle() {
  static const quire_backend_table table = [] {
    quire_backend_table made = reference().table();
    made.run = [](quire_stream*, quire_op, const void*, void*, std::size_t) -> quire_status { return QUIRE_OK; };
    made.capture = [](quire_device, const quire_call*, std::int32_t, quire_step**) -> quire_status { return QUIRE_UNSUPPORTED; };
    return made;
  }();
  static const Backend backend(&table, "(idle)");
  return backend;
}

quire::conformance::EvaluateOptions on(const Backend& backend) {
  return {{&backend, nullptr}, {}, [](const std::string&, const quire::Tensor&) { return json(); }};
}

std::vector<json> cases_of(const std::string& family) {
  std::vector<json> all;
  for (std::uint64_t n = 0; n < cases; ++n) all.push_back(quire::conformance::case_of({family, n}));
  return all;
}

using Calls = std::vector<std::unique_ptr<Sandbox>>;

Calls calls_of(const std::string& family) {
  Calls calls;
  recorded = &calls;
  for (const json& test_case : cases_of(family)) quire::conformance::evaluate(test_case, on(recorder()));
  return calls;
}

// The same calls again, outside the time: pools that are run on over and over would leave their range.
Calls fresh(benchmark::State& state, const Calls& calls) {
  state.PauseTiming();
  Calls copies;
  for (const auto& call : calls) copies.push_back(std::make_unique<Sandbox>(call->call().op(), call->args(), std::byte{0}));
  state.ResumeTiming();
  return copies;
}

void generate(benchmark::State& state, const std::string& family) {
  for (auto _ : state) {
    for (std::uint64_t n = 0; n < cases; ++n) benchmark::DoNotOptimize(quire::conformance::case_of({family, n}));
  }
}

void laws(benchmark::State& state, const std::string& family) {
  const std::vector<json> all = cases_of(family);
  for (auto _ : state) {
    for (const json& test_case : all) benchmark::DoNotOptimize(quire::conformance::laws_of(test_case));
  }
}

void read(benchmark::State& state, const std::string& family) {
  const std::vector<json> all = cases_of(family);
  for (auto _ : state) {
    for (const json& test_case : all) benchmark::DoNotOptimize(quire::conformance::evaluate(test_case, on(idle())));
  }
}

template <const Backend& (*backend)(), int times>
void run(benchmark::State& state, const std::string& family) {
  const Calls calls = calls_of(family);
  for (auto _ : state) {
    for (const auto& call : fresh(state, calls)) {
      for (int n = 0; n < times; ++n) backend().run(nullptr, call->call().op(), call->args());
    }
  }
}

void tolerance(benchmark::State& state, const std::string& family) {
  const Calls calls = calls_of(family);
  for (auto _ : state) {
    for (const auto& call : calls) {
      const void* args = call->args();
      const quire_contract contract = quire::conformance::honest_contract({}, call->call().op());
      switch (call->call().op()) {
        case QUIRE_OP_ATTEND:
          benchmark::DoNotOptimize(quire::reference::attend_bounds(*static_cast<const quire_attend_args*>(args), contract));
          break;
        case QUIRE_OP_GDN_PREFILL:
          benchmark::DoNotOptimize(quire::reference::gdn_prefill_bounds(*static_cast<const quire_gdn_prefill_args*>(args), contract));
          break;
        case QUIRE_OP_GDN_DECODE:
          benchmark::DoNotOptimize(quire::reference::gdn_decode_bounds(*static_cast<const quire_gdn_decode_args*>(args), contract));
          break;
        case QUIRE_OP_GDN_VERIFY:
          benchmark::DoNotOptimize(quire::reference::gdn_verify_bounds(*static_cast<const quire_gdn_verify_args*>(args), contract));
          break;
        default: break;
      }
    }
  }
}

void judge(benchmark::State& state, const std::string& family) {
  const Calls calls = calls_of(family);
  for (auto _ : state) {
    for (const auto& call : fresh(state, calls))
      benchmark::DoNotOptimize(quire::conformance::judge_call(honest(), reference(), call->call().op(), call->args()));
  }
}

void whole(benchmark::State& state, const std::string& family) {
  quire::conformance::RunOptions options;
  options.candidate = &honest();
  options.reference = &reference();
  options.families = {family};
  options.count = cases;
  for (auto _ : state) {
    if (run_cases(options).total().failed > 0) state.SkipWithError("a case failed");
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("QUIRE_THREADS", "1", 1);
  using Step = void (*)(benchmark::State&, const std::string&);
  const std::pair<const char*, Step> steps[] = {
      {"generate", generate},        {"laws", laws},   {"read", read},  {"reference", run<reference, 1>}, {"tolerance", tolerance},
      {"candidate", run<honest, 2>}, {"judge", judge}, {"whole", whole}};
  for (const std::string& family : quire::conformance::case_families()) {
    // Cases of these take as long as a hundred small ones, or are not generated.
    if (family == "wide" || family == "far" || family == "golden") continue;
    for (const auto& [name, step] : steps) {
      benchmark::RegisterBenchmark((family + "/" + name).c_str(), [family, step = step](benchmark::State& state) {
        step(state, family);
        state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(cases));
      })->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
