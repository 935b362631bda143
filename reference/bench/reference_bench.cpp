// What the reference's main calls cost: prefill of the gated delta rule, attention of one token, extend of a chunk.
//
// QUIRE_THREADS and QUIRE_ISA choose threads and instruction set, as everywhere.
#include "bench_tensors.h"

#include <quire/ops.h>

#include <benchmark/benchmark.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace {

using quire::DType;
using quire::Tensor;
using quire::bench::filled;

Tensor numbers(std::int64_t begin, std::int64_t count, quire::Shape shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), begin);
  return Tensor::of(std::span<const std::int64_t>(values), std::move(shape));
}

// Heads, tokens; K = V = 128. Multiply-adds per token and head: S k, r k^T, S q.
void gdn_prefill(benchmark::State& state) {
  const std::int64_t heads = state.range(0), tokens = state.range(1), size = 128;
  quire::GdnPrefill call;
  call.inputs.q = filled({tokens, heads, size});
  call.inputs.k = filled({tokens, heads, size});
  call.inputs.v = filled({tokens, heads, size});
  call.inputs.g = filled({tokens, heads});
  call.inputs.beta = filled({tokens, heads});
  for (std::int64_t i = 0; i < tokens * heads; ++i) call.inputs.g.data<float>()[i] = 0.95F;
  call.inputs.use_qk_l2norm = true;
  call.cu_seqlens = Tensor::of({0, tokens});
  call.output_final_state = true;
  for (auto _ : state) benchmark::DoNotOptimize(quire::gdn_prefill(call));
  state.counters["multiply_adds"] = benchmark::Counter(static_cast<double>(3 * tokens * heads * size * size), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(gdn_prefill)->Args({32, 512})->Unit(benchmark::kMillisecond)->UseRealTime();

// One token over `columns` columns, 32 query and 8 kv heads, D = 128.
void attend_one_token(benchmark::State& state) {
  const std::int64_t columns = state.range(0);
  const quire::Index index = quire::Index::make(numbers(columns - 1, 1, {1, 1}), numbers(0, columns, {1, columns}));
  const Tensor q = filled({1, 1, 32, 128}), k = filled({1, 1, 8, 128}), v = filled({1, 1, 8, 128});
  const Tensor k_pool = filled({columns, 8, 128}), v_pool = filled({columns, 8, 128});
  for (auto _ : state) benchmark::DoNotOptimize(quire::attend(index, q, k, v, quire::Pool::in_place(k_pool), quire::Pool::in_place(v_pool)));
  state.counters["multiply_adds"] = benchmark::Counter(static_cast<double>(2 * columns * 32 * 128), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(attend_one_token)->Arg(8192)->Unit(benchmark::kMillisecond)->UseRealTime();

// A chunk of `tokens` tokens that sees `columns` columns.
void attend_chunk(benchmark::State& state) {
  const std::int64_t tokens = state.range(0), columns = state.range(1);
  const quire::Index index = quire::Index::make(numbers(columns - tokens, tokens, {1, tokens}), numbers(0, columns, {1, columns}));
  const Tensor q = filled({1, tokens, 32, 128}), k = filled({1, tokens, 8, 128}), v = filled({1, tokens, 8, 128});
  const Tensor k_pool = filled({columns, 8, 128}), v_pool = filled({columns, 8, 128});
  for (auto _ : state) benchmark::DoNotOptimize(quire::attend(index, q, k, v, quire::Pool::in_place(k_pool), quire::Pool::in_place(v_pool)));
  state.counters["multiply_adds"] =
      benchmark::Counter(static_cast<double>(2 * tokens * (2 * columns - tokens + 1) / 2 * 32 * 128), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(attend_chunk)->Args({128, 1024})->Unit(benchmark::kMillisecond)->UseRealTime();

// 128 rows of 4 KiB into a pool of `slots` rows, in place: the time must not depend on `slots`. The window keeps what is read to the
// call's own rows.
void extend_rows(benchmark::State& state) {
  const std::int64_t slots = state.range(0), tokens = 128, width = 1024;
  const quire::Index index = quire::Index::make(numbers(0, tokens, {1, tokens}), numbers(slots - tokens, tokens, {1, tokens})).window(1);
  const Tensor values = filled({1, tokens, width});
  const Tensor pool = Tensor::zeros(DType::f32, {slots, width});
  for (auto _ : state) benchmark::DoNotOptimize(quire::extend(index, values, quire::Pool::in_place(pool)));
  state.SetBytesProcessed(state.iterations() * 2 * tokens * width * 4);
}
BENCHMARK(extend_rows)->Arg(1024)->Arg(65536)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
