// Calibration runs.
#include "honest_runs.h"

#include "honest/backend.h"
#include "honest/honest.h"

#include <array>
#include <utility>

namespace quire::conformance {

namespace {

using Recurrence = HonestOptions::Recurrence;
using Attention = HonestOptions::Attention;

struct Way {
  const char* name;
  HonestOptions options;
};

constexpr std::array<Way, 12> ways = {{
    {"token, direct", {}},
    {"token, online, fma", {Recurrence::token, 64, false, Attention::online, true, false}},
    {"token, split, reversed sums", {Recurrence::token, 64, false, Attention::split, false, true}},
    {"token, direct, fma, reversed sums", {Recurrence::token, 64, false, Attention::direct, true, true}},
    {"chunked 16, online", {Recurrence::chunked, 16, false, Attention::online, false, false}},
    {"chunked 64, split", {Recurrence::chunked, 64, false, Attention::split, false, false}},
    {"chunked 128, direct", {Recurrence::chunked, 128, false, Attention::direct, false, false}},
    {"chunked 64, online, fma, reversed sums", {Recurrence::chunked, 64, false, Attention::online, true, true}},
    {"chunked 16, log sums, direct, fma", {Recurrence::chunked, 16, true, Attention::direct, true, false}},
    {"chunked 64, log sums, online", {Recurrence::chunked, 64, true, Attention::online, false, false}},
    {"chunked 128, log sums, split, reversed sums", {Recurrence::chunked, 128, true, Attention::split, false, true}},
    {"chunked 64, log sums, split, fma, reversed sums", {Recurrence::chunked, 64, true, Attention::split, true, true}},
}};

// A table of its own for each way: a table's functions carry no data.
template <std::size_t N>
const quire_backend_table* table() {
  static const quire_backend_table made = honest::host_table(
      [](quire_backend_info* info) { return honest::describe_as("honest", ways[N].name, info); }, honest::supports_host,
      [](quire_stream*, quire_op op, const void* args, void*, std::size_t) { return honest_run(op, args, ways[N].options); },
      [](quire_op op, quire_dtype, quire_dtype, quire_contract* contract) { return honest::contract_of(ways[N].options, op, contract); });
  return &made;
}

template <std::size_t... N>
std::array<const quire_backend_table*, sizeof...(N)> tables(std::index_sequence<N...>) {
  return {table<N>()...};
}

}  // namespace

std::vector<HonestResult> run_honest(std::uint64_t first, std::uint64_t count, std::size_t jobs, const std::function<bool()>& interrupted,
                                     const std::function<void(const HonestResult&)>& done) {
  const auto all = tables(std::make_index_sequence<ways.size()>());
  std::vector<HonestResult> results;
  for (std::size_t n = 0; n < ways.size(); ++n) {
    const Backend candidate(all[n], "(honest)");
    RunOptions options;
    options.candidate = &candidate;
    options.reference = &backend("reference");
    options.first = first + n * count;  // other cases for each way
    options.count = count;
    options.jobs = jobs;
    options.interrupted = interrupted;
    results.push_back({ways[n].name, run_cases(options)});
    done(results.back());
    if (results.back().report.interrupted) break;
  }
  return results;
}

}  // namespace quire::conformance
