// Calibration runs.
#include "honest_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "golden_cases.h"
#include "honest/backend.h"
#include "honest/honest.h"
#include "regimes.h"

namespace quire::conformance {

namespace {

using Recurrence = HonestOptions::Recurrence;
using Attention = HonestOptions::Attention;
using Format = HonestOptions::Format;

constexpr std::array<HonestOptions, 31> ways = {{
    {},
    {Recurrence::token, 64, false, Attention::online, true, false},
    {Recurrence::token, 64, false, Attention::split, false, true},
    {Recurrence::token, 64, false, Attention::direct, true, true},
    {Recurrence::chunked, 16, false, Attention::online, false, false},
    {Recurrence::chunked, 64, false, Attention::split, false, false},
    {Recurrence::chunked, 128, false, Attention::direct, false, false},
    {Recurrence::chunked, 64, false, Attention::online, true, true},
    {Recurrence::chunked, 16, true, Attention::direct, true, false},
    {Recurrence::chunked, 64, true, Attention::online, false, false},
    {Recurrence::chunked, 128, true, Attention::split, false, true},
    {Recurrence::chunked, 64, true, Attention::split, true, true},
    {Recurrence::token, 64, false, Attention::direct, false, false, Format::tf32},
    {Recurrence::token, 64, false, Attention::online, true, true, Format::tf32},
    {Recurrence::chunked, 64, false, Attention::split, false, false, Format::tf32},
    {Recurrence::chunked, 16, true, Attention::direct, true, false, Format::tf32},
    {Recurrence::token, 64, false, Attention::direct, true, false, Format::half},
    {Recurrence::chunked, 64, true, Attention::online, false, false, Format::half},
    {Recurrence::chunked, 16, false, Attention::split, false, true, Format::half},
    {Recurrence::token, 64, false, Attention::direct, false, false, Format::bf16},
    {Recurrence::token, 64, false, Attention::split, true, true, Format::bf16},
    {Recurrence::chunked, 64, false, Attention::online, false, false, Format::bf16},
    {Recurrence::chunked, 128, true, Attention::direct, true, false, Format::bf16},
    {Recurrence::token, 64, false, Attention::direct, false, false, Format::float32, Format::bf16},
    {Recurrence::chunked, 64, false, Attention::split, true, false, Format::float32, Format::bf16},
    {Recurrence::chunked, 16, true, Attention::online, false, true, Format::float32, Format::bf16},
    {Recurrence::token, 64, false, Attention::split, false, false, Format::float32, Format::half},
    {Recurrence::chunked, 64, true, Attention::direct, true, true, Format::float32, Format::half},
    {Recurrence::token, 64, false, Attention::online, false, false, Format::bf16, Format::bf16},
    {Recurrence::chunked, 64, false, Attention::direct, true, false, Format::bf16, Format::bf16},
    {Recurrence::chunked, 64, true, Attention::split, false, true, Format::bf16, Format::bf16},
}};

constexpr std::string_view formats[] = {"float32", "tf32", "bf16", "half"};
std::string_view name_of(Format format) { return formats[static_cast<std::size_t>(format)]; }

std::string contract_name(const HonestOptions& way) {
  if (way.stored == Format::float32) return std::string(name_of(way.products));
  const std::string stored = fmt::format("{}-stored", name_of(way.stored));
  return way.products == Format::float32 ? stored : fmt::format("{}-{}", name_of(way.products), stored);
}

std::string way_name(const HonestOptions& way) {
  constexpr std::string_view attentions[] = {"direct", "online", "split"};
  const std::string contract = contract_name(way);
  std::string name = contract == "float32" ? "" : contract + "-";
  name += way.recurrence == Recurrence::token ? "token" : fmt::format("chunked-{}", way.chunk_length);
  if (way.recurrence == Recurrence::chunked && way.decay_from_log_sums) name += "-logs";
  name += fmt::format("-{}", attentions[static_cast<std::size_t>(way.attention)]);
  return name + (way.fma ? "-fma" : "") + (way.reversed_sums ? "-reversed" : "");
}

// What of a way matters to an op's numerics.
std::string way_regime(const HonestOptions& way, quire_op op) {
  constexpr std::string_view attentions[] = {"direct", "online", "split"};
  if (op == QUIRE_OP_ATTEND) return fmt::format("way: {}", attentions[static_cast<std::size_t>(way.attention)]);
  if (way.recurrence == Recurrence::token || op != QUIRE_OP_GDN_PREFILL) return "way: token by token";
  return fmt::format("way: chunks of {}{}", way.chunk_length, way.decay_from_log_sums ? ", log sums" : "");
}

// A table of its own for each way: a table's functions carry no data.
template <std::size_t N>
struct Way {
  static quire_status describe(quire_backend_info* info) {
    static const std::string name = way_name(ways[N]);
    return honest::describe_as("honest", name.c_str(), info);
  }
  static quire_status run(quire_stream*, quire_op op, const void* args, void*, std::size_t) { return honest_run(op, args, ways[N]); }
  static quire_status contract(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) { return honest::contract_of(ways[N], op, contract); }
  static const quire_backend_table* table() {
    static const quire_backend_table made = honest::host_table<describe, honest::supports_host, run, contract>();
    return &made;
  }
};

template <std::size_t... N>
std::array<const quire_backend_table*, sizeof...(N)> tables(std::index_sequence<N...>) {
  return {Way<N>::table()...};
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Numbers of the ways that are asked for.
std::vector<std::size_t> chosen(const std::vector<std::string>& names) {
  const std::vector<std::string> known = honest_names(), contracts = honest_contracts();
  for (const std::string& name : names) {
    if (!is_one_of(known, name) && !is_one_of(contracts, name)) {
      reject("honest", "\"" + name + "\"",
             fmt::format("the contracts {}; the ways {}", fmt::join(contracts, ", "), fmt::join(known, ", ")));
    }
  }
  std::vector<std::size_t> numbers;
  for (std::size_t n = 0; n < ways.size(); ++n) {
    if (names.empty() || is_one_of(names, known[n]) || is_one_of(names, contract_name(ways[n]))) numbers.push_back(n);
  }
  return numbers;
}

RunReport run_lines(const HonestRun& run, Judging& judging) {
  RunReport report;
  const auto start = std::chrono::steady_clock::now();
  for (const CaseLine& line : run.lines) {
    if (run.interrupted && run.interrupted()) {
      report.interrupted = true;
      break;
    }
    if (run.before) run.before({line});
    run_case(line, case_of(line), judging, &report);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

std::vector<std::string> honest_names() {
  std::vector<std::string> names;
  for (const HonestOptions& way : ways) names.push_back(way_name(way));
  return names;
}

std::vector<std::string> honest_contracts() {
  std::vector<std::string> names;
  for (const HonestOptions& way : ways) {
    if (!is_one_of(names, contract_name(way))) names.push_back(contract_name(way));
  }
  return names;
}

std::uint64_t honest_case_count(const HonestRun& run) {
  return chosen(run.names).size() *
         (run.lines.empty() ? case_count(run.families.empty() ? case_families() : run.families, run.count) : run.lines.size());
}

std::vector<HonestResult> run_honest(const HonestRun& run) {
  static const auto all = tables(std::make_index_sequence<ways.size()>());
  std::vector<HonestResult> results;
  for (const std::size_t n : chosen(run.names)) {
    const Backend candidate(all[n], "(honest)");
    const auto classify = [n](quire_op op, const void* args) {
      std::vector<std::string> regimes = regimes_of(op, args);
      if (!regimes.empty()) regimes.push_back(way_regime(ways[n], op));
      return regimes;
    };
    HonestResult result{way_name(ways[n]), contract_name(ways[n]), {}};
    if (run.lines.empty()) {
      RunOptions options;
      options.candidate = &candidate;
      options.reference = &backend("reference");
      options.families = run.families;
      options.first = run.first + n * run.count;  // other cases for each way
      options.count = run.count;
      options.jobs = run.jobs;
      options.before = run.before;
      options.interrupted = run.interrupted;
      options.classify = classify;
      result.report = run_cases(options);
    } else {
      Judging judging(candidate, backend("reference"));
      judging.classify_by(classify);
      result.report = run_lines(run, judging);
    }
    results.push_back(std::move(result));
    if (run.done) run.done(results.back());
    if (results.back().report.interrupted) break;
  }
  return results;
}

}  // namespace quire::conformance
