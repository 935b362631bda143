// What this machine can do: copy bandwidth and float64 multiply-adds, the roofs of the other figures.
#include <benchmark/benchmark.h>

#include <cstring>
#include <thread>
#include <vector>

namespace {

void each_core(const auto& body) {
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(body);
  body();
}

// Every core copies a part of its own that no cache holds.
void machine_copy(benchmark::State& state) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const unsigned cores = std::thread::hardware_concurrency();
  std::vector<std::vector<char>> from(cores, std::vector<char>(bytes, 1)), to(cores, std::vector<char>(bytes));
  for (auto _ : state) {
    std::atomic<unsigned> next{0};
    each_core([&] {
      const unsigned core = next++;
      std::memcpy(to[core].data(), from[core].data(), bytes);
      benchmark::ClobberMemory();
    });
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * cores * bytes));
}
BENCHMARK(machine_copy)->Unit(benchmark::kMillisecond)->UseRealTime();

// Multiply, then add, in registers: vectors as wide as the build's own baseline, and as the widest set where the compiler is told so.
using Vector = double __attribute__((vector_size(64)));
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
double
multiply_adds(std::int64_t rounds) {
  constexpr int chains = 8;
  Vector sum[chains] = {};
  Vector factor = {1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
  benchmark::DoNotOptimize(factor);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (Vector& chain : sum) chain = chain * factor + factor;
  }
  double total = 0;
  for (const Vector& chain : sum) total += chain[0];
  return total;
}

void machine_multiply_adds(benchmark::State& state) {
  constexpr std::int64_t rounds = 1 << 20;
  for (auto _ : state) {
    each_core([] { benchmark::DoNotOptimize(multiply_adds(rounds)); });
  }
  state.counters["multiply_adds"] =
      benchmark::Counter(static_cast<double>(rounds) * 8 * 8 * std::thread::hardware_concurrency(), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(machine_multiply_adds)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
