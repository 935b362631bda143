// What ops reject: shared memory, shapes and dtypes, by the argument's name (laws D5, E4, E7, E9).
#include "gdn_test_helpers.h"

#include <doctest/doctest.h>

#include <limits>

using namespace quire;
using namespace quire::test;

namespace {
Tensor zeros(Shape shape, DType dtype = DType::f32) { return Tensor::zeros(dtype, std::move(shape)); }
}  // namespace

TEST_CASE("a pool that is changed shares no memory with what the call reads") {
  const Index index = rows(4, {2});
  const Tensor buffer = zeros({64});
  const auto view = [&](std::int64_t offset, Shape shape, Shape strides = {}) {
    return Tensor::borrow(buffer.raw() + offset * 4, DType::f32, std::move(shape), std::move(strides));
  };
  check_rejected([&] { (void)extend(index, view(0, {1, 2, 3}), Pool::in_place(view(0, {4, 3}))); }, "pool", "values", "of its own");
  check_rejected([&] { (void)extend(index, view(11, {1, 2, 3}), Pool::in_place(view(0, {4, 3}))); }, "pool", "values", "of its own");
  CHECK_FALSE(caught([&] { (void)extend(index, view(12, {1, 2, 3}), Pool::in_place(view(0, {4, 3}))); }).raised);
  const Tensor same = view(0, {4, 3});
  CHECK_FALSE(caught([&] { (void)extend(index, view(0, {1, 2, 3}), same); }).raised);  // a copy is changed
  // An index's own tensors are never written.
  const Tensor table = i64({0, 1, 2, 3}, {1, 4});
  const Index mine = Index::make(i64({0, 1}, {1, 2}), table);
  check_rejected([&] { (void)extend(mine, i64({5, 6}, {1, 2, 1}), Pool::in_place(table.reshaped({4, 1}))); }, "pool", "index", "of its own");
  CHECK(whole_numbers(table) == Integers{0, 1, 2, 3});

  const Tensor q = zeros({1, 2, 2, 3}), k = zeros({1, 2, 1, 3});
  const auto attended = [&](const Tensor& the_q, const Tensor& k_pool, const Tensor& v_pool) {
    return [=, &index] { (void)attend(index, the_q, k, k, Pool::in_place(k_pool), Pool::in_place(v_pool)); };
  };
  check_rejected(attended(q, view(0, {4, 1, 3}), view(0, {4, 1, 3})), "v_pool", "k_pool", "of its own");
  check_rejected(attended(q, view(0, {4, 1, 3}), view(11, {4, 1, 3})), "v_pool", "k_pool", "of its own");
  check_rejected(attended(view(6, {1, 2, 2, 3}), view(0, {4, 1, 3}), view(30, {4, 1, 3})), "k_pool", "q", "of its own");
  // Interleaved rows that run into each other.
  check_rejected(attended(q, view(0, {4, 1, 3}, {6, 3, 1}), view(2, {4, 1, 3}, {6, 3, 1})), "v_pool", "k_pool", "of its own");
  check_rejected(attended(q, view(0, {4, 1, 3}, {6, 3, 1}), view(4, {4, 1, 3}, {6, 3, 1})), "v_pool", "k_pool", "of its own");
  CHECK_FALSE(caught(attended(q, view(0, {4, 1, 3}, {6, 3, 1}), view(3, {4, 1, 3}, {6, 3, 1}))).raised);
}

TEST_CASE("a state pool that is changed shares no memory with what the call reads") {
  const Tensor buffer = zeros({400});
  const auto states = [&](std::int64_t row, std::int64_t count) { return buffer.slice(row * 60, count * 60).reshaped({count, 4, 3, 5}); };
  GdnPrefill call;
  call.inputs = rule_inputs(2, 1);
  call.cu_seqlens = i32({0, 1, 2}, {3});
  call.initial_state = states(0, 2);
  call.output_state = Pool::in_place(states(1, 2));
  call.output_final_state = true;
  check_rejected([&] { (void)gdn_prefill(call); }, "output_state", "initial_state", "of its own");
  call.output_state = Pool::in_place(states(0, 2));
  CHECK_FALSE(caught([&] { (void)gdn_prefill(call); }).raised);  // one pool (E8)
  call.checkpoint_every_n_tokens = 64;
  call.checkpoint_cu_starts = i32({0, 0}, {2});
  call.state_checkpoints = Pool::in_place(states(1, 3));
  check_rejected([&] { (void)gdn_prefill(call); }, "state_checkpoints", "initial_state", "of its own");
  call.initial_state = {};
  check_rejected([&] { (void)gdn_prefill(call); }, "state_checkpoints", "output_state", "of its own");
  call.state_checkpoints = Pool::in_place(states(2, 3));
  CHECK_FALSE(caught([&] { (void)gdn_prefill(call); }).raised);
  call.inputs.q = buffer.slice(130, 40).reshaped({2, 4, 5});
  check_rejected([&] { (void)gdn_prefill(call); }, "state_checkpoints", "q", "of its own");

  GdnDecode decode;
  decode.inputs = as_batch(rule_inputs(1, 1), 1);
  decode.state_pool = Pool::in_place(states(0, 2));
  decode.state_indices = Tensor::borrow(buffer.raw() + 16, DType::i32, {1});
  check_rejected([&] { (void)gdn_decode(decode); }, "state_pool", "state_indices", "of its own");
  decode.state_indices = i32({0}, {1});
  decode.inputs.g = buffer.slice(3, 4).reshaped({1, 1, 4});
  check_rejected([&] { (void)gdn_decode(decode); }, "state_pool", "g", "of its own");
}

TEST_CASE("a paged call names the state pool, not the arguments of the call it is made of") {
  const Tensor buffer = zeros({400});
  const Tensor states = buffer.slice(0, 120).reshaped({2, 4, 3, 5});
  GdnInputs inputs = rule_inputs(2, 1);
  inputs.q = buffer.slice(0, 40).reshaped({2, 4, 5});
  const PagedSequences pages{i32({0}, {1}), i32({0, 1}, {2}), i32({2}, {1}), 64};
  check_rejected([&] { (void)gdn_prefill_paged(inputs, i32({0, 2}, {2}), Pool::in_place(states), pages); }, "state_pool", "q", "of its own");
}

TEST_CASE("an index's own tensors are never written by gdn_verify either") {
  const Tensor buffer = zeros({400});
  const Tensor states = buffer.slice(0, 120).reshaped({2, 4, 3, 5});
  const Tensor slots = Tensor::borrow(buffer.raw(), DType::i64, {1, 2});
  const Index draft = Index::make(i64({0, 1}, {1, 2}), i64({0}, {1, 1})).draft(slots, bools({1, 0, 1, 1}, {1, 2, 2}));
  check_rejected([&] { (void)gdn_verify(draft, as_batch(rule_inputs(2, 1), 1), Pool::in_place(states), i32({0}, {1}), i32({0, 1}, {1, 2})); }, "state_pool",
                 "index", "of its own");
}

TEST_CASE("extend: shapes and dtypes") {
  const Index index = rows(4, {2, 2});
  const auto run = [&](const Tensor& values, const Tensor& pool) { return [=, &index] { (void)extend(index, values, pool); }; };
  check_rejected(run({}, zeros({8, 3})), "values", "nothing", "[2, 2, ...]");
  check_rejected(run(zeros({2}), zeros({8})), "values", "f32[2]", "[2, 2, ...]");
  check_rejected(run(zeros({2, 3, 3}), zeros({8, 3})), "values", "f32[2, 3, 3]", "[2, 2, ...]");
  check_rejected(run(zeros({2, 2, 3}), {}), "pool", "nothing", "[N, ...]");
  check_rejected(run(zeros({2, 2, 3}), zeros({8, 4})), "pool", "f32[8, 4]", "f32 [N, 3]");
  check_rejected(run(zeros({2, 2, 3}), zeros({8, 3, 1})), "pool", "f32[8, 3, 1]", "f32 [N, 3]");
  check_rejected(run(zeros({2, 2, 3}), zeros({8, 3}, DType::f64)), "pool", "f64[8, 3]", "f32 [N, 3]");
  check_rejected(run(zeros({2, 2}), zeros({})), "pool", "f32[]", "f32 [N]");
  const Tensor memory = zeros({100});
  check_rejected(run(zeros({2, 2, 3}), Tensor::borrow(memory.raw(), DType::f32, {8, 3}, {1, 8})), "pool", "[1, 8]", "dense innermost axis");
  check_rejected(run(zeros({2, 2, 3}), Tensor::borrow(memory.raw(), DType::f32, {8, 3}, {2, 1})), "pool", "[2, 1]", "not overlap");
}

TEST_CASE("attend: shapes, dtypes and options (D5)") {
  const Index index = rows(4, {2, 2});
  const Tensor q = zeros({2, 2, 4, 3}), k = zeros({2, 2, 2, 3}), v = zeros({2, 2, 2, 5}), k_pool = zeros({8, 2, 3}), v_pool = zeros({8, 2, 5});
  const auto run = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e, const AttendOptions& options = {}) {
    return [=, &index] { (void)attend(index, a, b, c, d, e, options); };
  };
  CHECK_FALSE(caught(run(q, k, v, k_pool, v_pool)).raised);
  check_rejected(run({}, k, v, k_pool, v_pool), "q", "nothing", "[2, 2, Hq, D]");
  check_rejected(run(zeros({2, 2, 12}), k, v, k_pool, v_pool), "q", "f32[2, 2, 12]", "[2, 2, Hq, D]");
  check_rejected(run(zeros({1, 2, 4, 3}), k, v, k_pool, v_pool), "q", "f32[1, 2, 4, 3]", "[2, 2, Hq, D]");
  check_rejected(run(zeros({2, 2, 4, 3}, DType::i32), k, v, k_pool, v_pool), "q", "i32", "f16, bf16, f32 or f64");
  check_rejected(run(zeros({2, 2, 4, 3}, DType::f8_e5m2), k, v, k_pool, v_pool), "q", "f8_e5m2", "f16, bf16, f32 or f64");
  check_rejected(run(zeros({2, 2, 3, 3}), k, v, k_pool, v_pool), "q", "3 heads", "multiple of the 2");
  check_rejected(run(zeros({2, 2, 0, 3}), k, v, k_pool, v_pool), "q", "f32[2, 2, 0, 3]", "no empty axis");
  check_rejected(run(q, zeros({2, 2, 2, 4}), v, k_pool, v_pool), "k", "f32[2, 2, 2, 4]", "3, as q's");
  check_rejected(run(q, k, zeros({2, 2, 1, 5}), k_pool, v_pool), "v", "f32[2, 2, 1, 5]", "2 heads");
  check_rejected(run(q, k, v, {}, v_pool), "k_pool", "nothing", "[N, Hkv, *]");
  check_rejected(run(q, k, v, k_pool, {}), "v_pool", "nothing", "[N, Hkv, *]");
  check_rejected(run(q, k, v, zeros({8, 2, 5}), v_pool), "k_pool", "f32[8, 2, 5]", "[N, 2, 3]");
  check_rejected(run(q, k, v, k_pool, zeros({8, 2, 5}, DType::f16)), "v_pool", "f16[8, 2, 5]", "f32 [N, 2, 5]");
  AttendOptions options;
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    options.softcap = bad;
    check_rejected(run(q, k, v, k_pool, v_pool, options), "softcap", "", "above 0");
  }
  options.softcap = {};
  options.scale = std::numeric_limits<double>::infinity();
  check_rejected(run(q, k, v, k_pool, v_pool, options), "scale", "inf", "finite");
  options.scale = {};
  options.sinks = zeros({2});
  check_rejected(run(q, k, v, k_pool, v_pool, options), "sinks", "f32[2]", "[4]");
  options.sinks = zeros({4}, DType::i64);
  check_rejected(run(q, k, v, k_pool, v_pool, options), "sinks", "i64[4]", "f16, bf16, f32 or f64");
}

TEST_CASE("gdn_prefill: each error named (E4, E7, E9)") {
  const auto with = [](const auto& change) {
    GdnPrefill call;
    call.inputs = rule_inputs(70, 1);
    call.cu_seqlens = i32({0, 70}, {2});
    change(call);
    return [call] { (void)gdn_prefill(call); };
  };
  using Call = GdnPrefill;
  const Tensor states = zeros({3, 4, 3, 5});
  CHECK_FALSE(caught(with([](Call&) {})).raised);
  check_rejected(with([](Call& c) { c.cu_seqlens = {}; }), "cu_seqlens", "nothing", "[n + 1]");
  check_rejected(with([](Call& c) { c.cu_seqlens = i32({1, 70}, {2}); }), "cu_seqlens", "first entry of 1", "0");
  check_rejected(with([](Call& c) { c.cu_seqlens = i32({0, 50, 40, 70}, {4}); }), "cu_seqlens", "40 after 50", "never fall");
  check_rejected(with([](Call& c) { c.cu_seqlens = i32({0, 69}, {2}); }), "cu_seqlens", "last entry of 69", "70");
  check_rejected(with([](Call& c) { c.cu_seqlens = f32({0, 70}, {2}); }), "cu_seqlens", "f32[2]", "i32 or i64");
  check_rejected(with([](Call& c) { c.inputs.q = {}; }), "q", "nothing", "Hq, K");
  check_rejected(with([](Call& c) { c.inputs.k = zeros({70, 2, 4}); }), "k", "f32[70, 2, 4]", "5, as q's");
  check_rejected(with([](Call& c) { c.inputs.v = zeros({69, 2, 3}); }), "v", "f32[69, 2, 3]", "[70]");
  check_rejected(with([](Call& c) { c.inputs.v = zeros({70, 2, 3}, DType::f16); }), "v", "f16", "f32");
  check_rejected(with([](Call& c) { c.inputs.k = zeros({70, 1, 5}); }), "k", "1 heads", "2, as v's");
  check_rejected(with([](Call& c) { c.inputs.q = zeros({70, 3, 5}); }), "q", "3 heads", "multiple of the 2");
  check_rejected(with([](Call& c) { c.inputs.g = zeros({70, 2}); }), "g", "f32[70, 2]", "[70, 4]");
  check_rejected(with([](Call& c) { c.inputs.beta = zeros({70, 4}, DType::bf16); }), "beta", "bf16[70, 4]", "f32");
  check_rejected(with([](Call& c) { c.initial_state = zeros({1, 4, 5, 3}); }), "initial_state", "f32[1, 4, 5, 3]", "[1, 4, 3, 5]");
  check_rejected(with([](Call& c) { c.initial_state = zeros({1, 4, 3, 5}, DType::f64); }), "initial_state", "f64", "f32, bf16, f16 or fp8");
  check_rejected(with([&](Call& c) { c.initial_state = states; }), "initial_state", "f32[3, 4, 3, 5]", "[1, 4, 3, 5]");
  check_rejected(with([&](Call& c) { c.initial_state = states; c.state_indices = i32({0, 1}, {2}); }), "state_indices", "i32[2]", "[1]");
  check_rejected(with([&](Call& c) { c.output_state = states; c.output_state_indices = i32({0}, {1}); c.output_final_state = true; }), "output_state",
                 "f32[3, 4, 3, 5]", "[1, 4, 3, 5]");
  const auto needs = [&](bool indices, bool state, bool final_state) {
    return with([=](Call& c) {
      if (indices) c.state_indices = i32({0}, {1});
      if (state) c.output_state = zeros({1, 4, 3, 5});
      c.output_final_state = final_state;
      c.output_state_indices = i32({0}, {1});
    });
  };
  CHECK_FALSE(caught(needs(true, true, true)).raised);
  for (const auto& call : {needs(false, true, true), needs(true, false, true), needs(true, true, false)}) {
    check_rejected(call, "output_state_indices", "a tensor", "state_indices, output_state and output_final_state");
  }
  const auto checkpoints = [&](const auto& change) {
    return with([=](Call& c) {
      c.checkpoint_every_n_tokens = 64;
      c.state_checkpoints = zeros({1, 4, 3, 5});
      c.checkpoint_cu_starts = i32({0}, {1});
      change(c);
    });
  };
  CHECK_FALSE(caught(checkpoints([](Call&) {})).raised);
  for (const std::int64_t bad : {0, -64, 63, 100}) {
    check_rejected(checkpoints([=](Call& c) { c.checkpoint_every_n_tokens = bad; }), "checkpoint_every_n_tokens", std::to_string(bad), "multiple of 64");
  }
  check_rejected(checkpoints([](Call& c) { c.state_checkpoints = Tensor(); }), "state_checkpoints", "nothing", "checkpoint_every_n_tokens");
  check_rejected(checkpoints([](Call& c) { c.checkpoint_cu_starts = {}; }), "checkpoint_cu_starts", "nothing", "checkpoint_every_n_tokens");
  check_rejected(checkpoints([](Call& c) { c.checkpoint_every_n_tokens = {}; }), "state_checkpoints", "a tensor", "checkpoint_every_n_tokens");
  check_rejected(with([](Call& c) { c.prefix_lens = i32({0}, {1}); }), "prefix_lens", "a tensor", "checkpoint_every_n_tokens");
  check_rejected(with([](Call& c) { c.checkpoint_state_indices = i32({0}, {1}); }), "checkpoint_state_indices", "a tensor", "checkpoint_every_n_tokens");
  check_rejected(checkpoints([](Call& c) { c.prefix_lens = i32({-1}, {1}); }), "prefix_lens", "-1 for sequence 0", "0 or more");
  check_rejected(checkpoints([](Call& c) { c.prefix_lens = i64({std::numeric_limits<std::int64_t>::max()}, {1}); }), "prefix_lens", "9223372036854775807", "2^63");
  check_rejected(checkpoints([](Call& c) { c.checkpoint_cu_starts = i32({1}, {1}); }), "checkpoint_cu_starts", "1 for sequence 0", "1 rows of state_checkpoints");
  check_rejected(checkpoints([](Call& c) { c.checkpoint_cu_starts = i32({-1}, {1}); }), "checkpoint_cu_starts", "-1 for sequence 0", "inside");
  check_rejected(checkpoints([](Call& c) { c.prefix_lens = i32({60}, {1}); }), "checkpoint_cu_starts", "2 checkpoints", "1 rows");
  check_rejected(checkpoints([](Call& c) { c.checkpoint_state_indices = Tensor::empty(DType::i32, {0}); }), "checkpoint_cu_starts", "0 for sequence 0",
                 "0 checkpoint_state_indices");
  CHECK_FALSE(caught(checkpoints([](Call& c) { c.checkpoint_state_indices = i32({5}, {1}); })).raised);  // E7: a row outside is dropped
}

TEST_CASE("gdn_decode: raw gates come all four and without g and beta") {
  const auto with = [](const auto& change) {
    GdnDecode call;
    call.inputs = as_batch(rule_inputs(2, 1), 2);
    call.inputs.g = call.inputs.beta = {};
    call.state_pool = zeros({3, 4, 3, 5});
    call.state_indices = i32({0, 1}, {2});
    call.A_log = zeros({4});
    call.a = zeros({2, 1, 4});
    call.dt_bias = zeros({4});
    call.b = zeros({2, 1, 4});
    change(call);
    return [call] { (void)gdn_decode(call); };
  };
  using Call = GdnDecode;
  CHECK_FALSE(caught(with([](Call&) {})).raised);
  check_rejected(with([](Call& c) { c.A_log = {}; }), "A_log", "nothing", "[4]");
  check_rejected(with([](Call& c) { c.a = {}; }), "a", "nothing", "[2, 1, 4]");
  check_rejected(with([](Call& c) { c.dt_bias = zeros({2}); }), "dt_bias", "f32[2]", "[4]");
  check_rejected(with([](Call& c) { c.b = zeros({2, 4}); }), "b", "f32[2, 4]", "[2, 1, 4]");
  check_rejected(with([](Call& c) { c.b = zeros({2, 1, 4}, DType::i32); }), "b", "i32", "f16, bf16, f32 or f64");
  check_rejected(with([](Call& c) { c.inputs.g = zeros({2, 1, 4}); }), "A_log", "beside g or beta", "either");
  check_rejected(with([](Call& c) { c.inputs.q = zeros({2, 2, 4, 5}); }), "q", "f32[2, 2, 4, 5]", "B, 1");
  check_rejected(with([](Call& c) { c.state_pool = Tensor(); }), "state_pool", "nothing", "[rows, 4, 3, 5]");
  check_rejected(with([](Call& c) { c.state_indices = {}; }), "state_indices", "nothing", "[2]");
  check_rejected(with([](Call& c) { c.output_state_indices = i32({0}, {1}); }), "output_state_indices", "i32[1]", "[2]");
}
