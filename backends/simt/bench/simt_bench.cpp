// What the emulator costs: nanoseconds per thread and barrier, per thread and warp operation, per thread of a kernel that waits for
// nothing. Each figure is the counter "ns" of its line; the arguments are the block's threads and the warp width.
#include <benchmark/benchmark.h>

#include <ctime>
#include <vector>

#include "../../gpu/dialect.h"
#include "../launch.h"

namespace quire::gpu {
namespace {

struct Parameters {
  float* out;
  std::int64_t rounds;
};
QUIRE_KERNEL(barriers, Parameters) {
  for (std::int64_t i = 0; i < parameters.rounds; ++i) barrier();
}
QUIRE_KERNEL(sums, Parameters) {
  float value = 1.0F;
  for (std::int64_t i = 0; i < parameters.rounds; ++i) value = warp_sum(value) / 64.0F;
  parameters.out[thread()] = value;
}
QUIRE_KERNEL(no_waiting, Parameters) { parameters.out[thread()] = 2.0F; }
QUIRE_KERNEL(one_barrier, Parameters) {
  barrier();
  parameters.out[thread()] = 2.0F;
}

}  // namespace
}  // namespace quire::gpu

namespace quire::simt {
namespace {

void measure(benchmark::State& state, const gpu::Kernel& kernel, std::int64_t blocks, std::int64_t rounds, double per_launch) {
  Settings settings;
  settings.warp_width = static_cast<int>(state.range(1));
  const auto threads = static_cast<std::int32_t>(state.range(0));
  std::vector<float> out(256);
  const gpu::Launch launch = gpu::Launch::of(kernel, blocks, threads, 0, gpu::Parameters{out.data(), rounds});
  // The processor's time: the machine may have other work.
  const std::clock_t start = std::clock();
  for (auto _ : state) run(settings, launch);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  state.counters["ns"] = seconds * 1e9 / (static_cast<double>(state.iterations()) * per_launch);
}

void barrier_of_a_thread(benchmark::State& state) {
  measure(state, gpu::barriers(), 1, 1000, 1000.0 * static_cast<double>(state.range(0)));
}
void warp_sum_of_a_thread(benchmark::State& state) { measure(state, gpu::sums(), 1, 1000, 1000.0 * static_cast<double>(state.range(0))); }
void thread_that_waits_for_nothing(benchmark::State& state) {
  measure(state, gpu::no_waiting(), 1000, 0, 1000.0 * static_cast<double>(state.range(0)));
}
void thread_with_one_barrier(benchmark::State& state) {
  measure(state, gpu::one_barrier(), 1000, 0, 1000.0 * static_cast<double>(state.range(0)));
}
void launch_of_one_block(benchmark::State& state) { measure(state, gpu::no_waiting(), 1, 0, 1); }

void shapes(benchmark::internal::Benchmark* benchmark) {
  for (const int width : {32, 64})
    for (const int threads : {64, 128, 256}) benchmark->Args({threads, width});
}
BENCHMARK(barrier_of_a_thread)->Apply(shapes);
BENCHMARK(warp_sum_of_a_thread)->Apply(shapes);
BENCHMARK(thread_that_waits_for_nothing)->Apply(shapes);
BENCHMARK(thread_with_one_barrier)->Apply(shapes);
BENCHMARK(launch_of_one_block)->Apply(shapes);

}  // namespace
}  // namespace quire::simt

BENCHMARK_MAIN();
