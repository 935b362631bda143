// An engine's sizes: long sequences, wide batches, tables of many columns and pools of many pages. Each figure should follow the call's tokens
// and the columns that they see, and not the table's width or the pool's size.
#include "bench_tensors.h"

#include <quire/ops.h>
#include <quire/pages.h>

#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

namespace {

using quire::DType;
using quire::Tensor;
using quire::bench::filled;

constexpr std::int64_t page_size = 512;

quire::GdnInputs gdn_inputs(const quire::Shape& lead) {
  const auto shaped = [&](std::initializer_list<std::int64_t> rest) {
    quire::Shape shape = lead;
    shape.insert(shape.end(), rest);
    return filled(std::move(shape));
  };
  quire::GdnInputs inputs;
  inputs.q = shaped({1, 32});
  inputs.k = shaped({1, 32});
  inputs.v = shaped({2, 48});
  inputs.g = shaped({2});
  inputs.beta = shaped({2});
  for (std::int64_t i = 0; i < inputs.g.elements(); ++i) {
    inputs.g.data<float>()[i] = 0.98F;
    inputs.beta.data<float>()[i] = 0.5F;
  }
  inputs.use_qk_l2norm = true;
  return inputs;
}

// 64 lanes decode one token each at the end of their context; every lane's slots are a run of its own, or the pool's, where the context is
// longer than that.
quire::Index decoding(std::int64_t lanes, std::int64_t context, std::int64_t slots) {
  std::vector<std::int64_t> pos(static_cast<std::size_t>(lanes), context - 1), table(static_cast<std::size_t>(lanes * context)),
      blocks(static_cast<std::size_t>(lanes * (context / page_size)));
  for (std::size_t n = 0; n < table.size(); ++n) table[n] = static_cast<std::int64_t>(n) % slots;
  for (std::size_t n = 0; n < blocks.size(); ++n) blocks[n] = static_cast<std::int64_t>(n) % 65536;
  const auto tensor = [](const std::vector<std::int64_t>& values, quire::Shape shape) { return Tensor::of(std::span<const std::int64_t>(values), std::move(shape)); };
  return quire::Index::make(tensor(pos, {lanes, 1}), tensor(table, {lanes, context}), {}, {{page_size, tensor(blocks, {lanes, context / page_size})}});
}

void windowed_decode_64_lanes(benchmark::State& state) {
  const std::int64_t lanes = 64, context = state.range(0), slots = lanes * 1024;
  const quire::Index index = decoding(lanes, context, slots).window(64);
  const Tensor q = filled({lanes, 1, 2, 32}), k = filled({lanes, 1, 1, 32}), v = filled({lanes, 1, 1, 48});
  const Tensor k_pool = filled({slots, 1, 32}), v_pool = filled({slots, 1, 48});
  for (auto _ : state) benchmark::DoNotOptimize(quire::attend(index, q, k, v, quire::Pool::in_place(k_pool), quire::Pool::in_place(v_pool)));
  state.SetItemsProcessed(state.iterations() * lanes);
}
BENCHMARK(windowed_decode_64_lanes)->Arg(1024)->Arg(131072)->Unit(benchmark::kMicrosecond)->UseRealTime();

void windowed_attention_of_a_sequence(benchmark::State& state) {
  const std::int64_t tokens = state.range(0);
  const quire::Index index = quire::Index::whole(1, tokens).window(64);
  const Tensor q = filled({1, tokens, 2, 32}), k = filled({1, tokens, 1, 32}), v = filled({1, tokens, 1, 48});
  for (auto _ : state) benchmark::DoNotOptimize(quire::attend(index, q, k, v, {}, {}));
  state.SetItemsProcessed(state.iterations() * tokens);
}
BENCHMARK(windowed_attention_of_a_sequence)->Arg(4000)->Arg(120000)->Unit(benchmark::kMillisecond)->UseRealTime();

void gated_delta_rule_of_a_sequence(benchmark::State& state) {
  const std::int64_t tokens = state.range(0);
  quire::GdnPrefill call;
  call.inputs = gdn_inputs({tokens});
  call.cu_seqlens = Tensor::of({0, tokens});
  call.output_final_state = true;
  for (auto _ : state) benchmark::DoNotOptimize(quire::gdn_prefill(call));
  state.SetItemsProcessed(state.iterations() * tokens);
}
BENCHMARK(gated_delta_rule_of_a_sequence)->Arg(4000)->Arg(120000)->Unit(benchmark::kMillisecond)->UseRealTime();

// Page tables of 64 lanes and the decode that reads them, in place in a pool of so many pages.
void paged_decode_64_lanes(benchmark::State& state) {
  const std::int64_t lanes = 64, pages = state.range(0);
  const quire::Index index = decoding(lanes, 1024, lanes * 1024);
  const Tensor pool = Tensor::zeros(DType::f32, {pages, 2, 48, 32});
  for (auto _ : state) {
    quire::GdnDecode call;
    call.inputs = gdn_inputs({lanes, 1});
    call.state_pool = quire::Pool::in_place(pool);
    const quire::PageTable table = quire::PageTable::from(index, page_size);
    benchmark::DoNotOptimize(quire::gdn_decode_paged(std::move(call), table.sequences()));
  }
  state.SetItemsProcessed(state.iterations() * lanes);
}
BENCHMARK(paged_decode_64_lanes)->Arg(128)->Arg(65536)->Unit(benchmark::kMicrosecond)->UseRealTime();

void page_table_of_64_lanes(benchmark::State& state) {
  const quire::Index index = decoding(64, state.range(0) * page_size, 64 * 1024);
  for (auto _ : state) benchmark::DoNotOptimize(quire::PageTable::from(index, page_size));
  state.SetItemsProcessed(state.iterations() * 64 * state.range(0));
}
BENCHMARK(page_table_of_64_lanes)->Arg(16)->Arg(240)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
