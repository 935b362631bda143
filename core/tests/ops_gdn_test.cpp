// The gated delta rule: by hand, in plain loops, and one sequence cut in many ways, bit for bit (laws E1-E8).
#include "gdn_test_helpers.h"

#include <doctest/doctest.h>

#include <limits>

using namespace quire;
using namespace quire::test;

namespace {

// One head, K = V = 1.
GdnInputs tiny(std::initializer_list<float> v, float gate) {
  const auto n = static_cast<std::int64_t>(v.size());
  const std::vector<float> ones(v.size(), 1.0f), gates(v.size(), gate);
  GdnInputs inputs;
  inputs.q = inputs.k = Tensor::of(std::span<const float>(ones), {n, 1, 1});
  inputs.v = f32(v, {n, 1, 1});
  inputs.g = inputs.beta = Tensor::of(std::span<const float>(gates), {n, 1});
  return inputs;
}

GdnDecode decode(const GdnInputs& inputs, const Tensor& pool, const Tensor& read) {
  GdnDecode call;
  call.inputs = as_batch(inputs, read.size(0));
  call.inputs.use_qk_l2norm = inputs.use_qk_l2norm.value_or(false);
  call.state_pool = pool;
  call.state_indices = read;
  return call;
}

}  // namespace

TEST_CASE("the rule by hand: states .5, 1.125, 1.78125, 2.4453125") {
  const GdnInputs inputs = tiny({1, 2, 3, 4}, 0.5f);
  const GdnPrefilled got = prefill(inputs);
  CHECK(numbers(got.output) == Numbers{0.5, 1.125, 1.78125, 2.4453125});
  CHECK(numbers(got.output_state) == Numbers{2.4453125});
  CHECK(got.output_state.shape() == Shape{1, 1, 1, 1});
  CHECK(got.output_state.dtype() == DType::f32);
  // S <- 0.5*8 = 4; r = 0.5*(2 - 4) = -1; S = 3; scale 2.
  GdnInputs one = tiny({2}, 0.5f);
  one.scale = 2;
  CHECK(numbers(prefill(one, f32({8}, {1, 1, 1, 1})).output) == Numbers{6});
  // Absent gates are ones: S = v.
  GdnInputs bare = tiny({5, -3}, 1);
  bare.g = bare.beta = {};
  CHECK(numbers(prefill(bare, f32({8}, {1, 1, 1, 1})).output) == Numbers{5, -3});
}

TEST_CASE("E1, E2: grouped heads, scale and l2norm in plain loops") {
  const Rule rules[] = {{4, 2, 2, 5, 3}, {2, 2, 4, 5, 3}, {3, 3, 3, 4, 9}, {6, 1, 1, 2, 1}};
  for (const Rule& rule : rules) {
    CAPTURE(rule.query_heads);
    CAPTURE(rule.value_heads);
    for (const bool l2norm : {false, true}) {
      const Tensor initial = filled(DType::f32, {1, rule.heads(), rule.value_size, rule.key_size}, 40);
      GdnInputs inputs = rule_inputs(9, 3, rule);
      inputs.use_qk_l2norm = l2norm;
      const double by_default = 1 / std::sqrt(static_cast<double>(rule.key_size));
      for (const std::optional<double> scale : {std::optional<double>(), std::optional<double>(0.0), std::optional<double>(-1.5)}) {
        inputs.scale = scale;
        const double used = scale.value_or(0) == 0 ? by_default : *scale;  // in prefill 0 means the default
        const ByHand expected = rule_by_hand(inputs, rule, used, l2norm, initial.at(0));
        const GdnPrefilled got = prefill(inputs, initial);
        check_near(got.output, expected.output, 1e-6);
        check_near(got.output_state, expected.state, 1e-6);
      }
      // Decode takes 0 as it is.
      inputs.scale = 0;
      const GdnStates zeros = gdn_decode(decode(part(inputs, 0, 1), initial, i32({0}, {1})));
      for (const double number : numbers(zeros.output)) CHECK(number == 0);
    }
  }
  // Off by default in prefill, on in decode.
  const Rule rule;
  const GdnInputs one = rule_inputs(1, 3, rule);
  const double scale = 1 / std::sqrt(5.0);
  const Tensor initial = filled(DType::f32, {1, 4, 3, 5}, 40);
  check_near(prefill(one, initial).output, rule_by_hand(one, rule, scale, false, initial.at(0)).output, 1e-6);
  GdnDecode call = decode(one, initial, i32({0}, {1}));
  call.inputs.use_qk_l2norm = {};
  check_near(gdn_decode(call).output, rule_by_hand(one, rule, scale, true, initial.at(0)).output, 1e-6);
}

TEST_CASE("E3: gates from raw inputs") {
  GdnInputs one = tiny({2}, 1);
  one.g = one.beta = {};
  for (const float a : {-1.0f, 0.3f, 30.0f}) {
    GdnDecode call = decode(one, f32({8}, {1, 1, 1, 1}), i32({0}, {1}));
    call.A_log = f32({-3}, {1});
    call.a = f32({a}, {1, 1, 1});
    call.dt_bias = f32({0.5}, {1});
    call.b = f32({0.25}, {1, 1, 1});
    const double x = static_cast<double>(a) + 0.5;
    const double softplus = x > 20 ? x : std::log1p(std::exp(x));
    const double g = std::exp(-std::exp(-3.0) * softplus), beta = 1 / (1 + std::exp(-0.25));
    CHECK(gdn_decode(call).state_pool.number(Shape{0, 0, 0, 0}) == doctest::Approx(g * 8 + beta * (2 - g * 8)).epsilon(1e-6));
  }
}

TEST_CASE("a prefill split at any token is the whole, bit for bit, where states are exact") {
  const std::int64_t tokens = 12;
  const GdnInputs inputs = exact_inputs(tokens, 5);
  const Tensor initial = Tensor::zeros(DType::f32, {1, 4, 3, 5});
  for_elements(initial, [&](std::int64_t n, std::byte* e) { write_number(DType::f32, e, static_cast<double>(n % 9) - 4); });
  const GdnPrefilled whole = prefill(inputs, initial);
  const Rule rule;
  const ByHand expected = rule_by_hand(inputs, rule, 1 / std::sqrt(5.0), false, initial.at(0));
  CHECK(numbers(whole.output_state) == expected.state);  // exact
  for (std::int64_t cut = 0; cut <= tokens; ++cut) {
    CAPTURE(cut);
    const GdnPrefilled one = prefill(part(inputs, 0, cut), initial);
    const GdnPrefilled two = prefill(part(inputs, cut, tokens - cut), one.output_state);
    CHECK(bytes(one.output) + bytes(two.output) == bytes(whole.output));
    CHECK(same_bits(two.output_state, whole.output_state));
  }
  // And decoded from any token on.
  Tensor pool = prefill(part(inputs, 0, 4), initial).output_state;
  std::string output;
  for (std::int64_t t = 4; t < tokens; ++t) {
    GdnStates step = gdn_decode(decode(part(inputs, t, 1), pool, i64({0}, {1})));
    output += bytes(step.output);
    pool = step.state_pool;
  }
  CHECK(output == bytes(part(GdnInputs{whole.output, {}, {}, {}, {}, {}, {}}, 4, tokens - 4).q));
  CHECK(same_bits(pool, whole.output_state));
}

TEST_CASE("decode is prefill of one token, whatever the values and the state's dtype") {
  for (const DType state : {DType::f32, DType::bf16, DType::f16, DType::f8_e4m3fn, DType::f8_e5m2}) {
    CAPTURE(std::string(name(state)));
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::f16}) {
      GdnInputs inputs = rule_inputs(3, 8, {}, dtype);
      inputs.use_qk_l2norm = true;
      const Tensor pool = filled(state, {5, 4, 3, 5}, 30);
      // Three sequences of one token, reading rows 4, 0, 2 and writing 1, 0, nothing.
      GdnDecode call = decode(inputs, pool, i32({4, 0, 2}, {3}));
      call.output_state_indices = i64({1, 0, -1}, {3});
      const GdnStates decoded = gdn_decode(call);
      GdnPrefill same;
      same.inputs = inputs;
      same.cu_seqlens = i32({0, 1, 2, 3}, {4});
      same.initial_state = pool;
      same.state_indices = i32({4, 0, 2}, {3});
      same.output_state = pool;
      same.output_state_indices = i32({1, 0, -1}, {3});
      same.output_final_state = true;
      const GdnPrefilled prefilled = gdn_prefill(std::move(same));
      CHECK(bytes(decoded.output) == bytes(prefilled.output));
      CHECK(same_bits(decoded.state_pool, prefilled.output_state));
      for (const std::int64_t row : {2, 3, 4}) CHECK(same_bits(decoded.state_pool.at(row), pool.at(row)));
    }
  }
}

TEST_CASE("E4: sequences of a call give the bits they give alone; a zero-length one writes nothing") {
  const GdnInputs inputs = rule_inputs(10, 2);
  const Tensor pool = filled(DType::f32, {4, 4, 3, 5}, 30);
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = i32({0, 3, 3, 10}, {4});
  call.initial_state = pool;
  call.state_indices = i32({2, 1, 0}, {3});
  call.output_state = pool;
  call.output_final_state = true;
  const GdnPrefilled got = gdn_prefill(std::move(call));
  const GdnPrefilled first = prefill(part(inputs, 0, 3), pool.slice(2, 1)), last = prefill(part(inputs, 3, 7), pool.slice(0, 1));
  CHECK(bytes(got.output) == bytes(first.output) + bytes(last.output));
  CHECK(bytes(got.output_state) == bytes(last.output_state) + bytes(pool.at(1)) + bytes(first.output_state) + bytes(pool.at(3)));
  // The call's own tensor holds the initial state of the zero-length sequence.
  GdnPrefill fresh;
  fresh.inputs = inputs;
  fresh.cu_seqlens = i64({0, 3, 3, 10}, {4});
  fresh.initial_state = pool;
  fresh.state_indices = i32({2, 1, -1}, {3});
  fresh.output_final_state = true;
  const GdnPrefilled own = gdn_prefill(std::move(fresh));
  CHECK(bytes(own.output_state) == bytes(first.output_state) + bytes(pool.at(1)) + bytes(prefill(part(inputs, 3, 7)).output_state));
}

TEST_CASE("E6: rows that address nothing") {
  const GdnInputs inputs = rule_inputs(3, 2);
  const Tensor pool = filled(DType::f32, {4, 4, 3, 5}, 30);
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = i32({0, 1, 2, 3}, {4});
  call.initial_state = pool;
  call.state_indices = i32({4, -7, 3}, {3});
  call.output_state = pool;
  call.output_state_indices = i32({0, 1, 99}, {3});
  call.output_final_state = true;
  const GdnPrefilled got = gdn_prefill(std::move(call));
  CHECK(bytes(got.output_state) ==
        bytes(prefill(part(inputs, 0, 1)).output_state) + bytes(prefill(part(inputs, 1, 1)).output_state) + bytes(pool.at(2)) + bytes(pool.at(3)));
  // In decode such a sequence is padded: zero output, nothing stored.
  GdnDecode decoded = decode(inputs, pool, i32({-1, 4, 3}, {3}));
  decoded.output_state_indices = i32({0, 1, 99}, {3});
  const GdnStates states = gdn_decode(decoded);
  CHECK(same_bits(states.state_pool, pool));
  const std::vector<double> output = numbers(states.output);
  for (std::size_t n = 0; n < output.size(); ++n) CHECK((output[n] == 0) == (n < 2 * 12));
}

TEST_CASE("E5: a state is rounded once, when it is stored, and saturates in fp8") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [state, expected] : {std::pair{DType::f8_e4m3fn, 448.0}, {DType::f8_e5m2, 57344.0}, {DType::f16, infinity}, {DType::bf16, 0x1.fcp99}}) {
    CAPTURE(std::string(name(state)));
    GdnPrefill call;
    call.inputs = tiny({1}, 1);
    call.inputs.v.data<float>()[0] = 0x1.fdp99f;  // rounds to even in bf16
    call.cu_seqlens = i32({0, 1}, {2});
    call.output_state = Tensor::zeros(state, {1, 1, 1, 1});
    call.output_final_state = true;
    const GdnPrefilled got = gdn_prefill(std::move(call));
    CHECK(got.output_state.number(Shape{0, 0, 0, 0}) == expected);
    CHECK(got.output.number(Shape{0, 0, 0}) == 0x1.fdp99);  // not through the state's dtype
  }
}

TEST_CASE("E7: checkpoints are the final states of shorter prefills") {
  const GdnInputs inputs = rule_inputs(300, 2);
  const Tensor pool = filled(DType::f32, {8, 4, 3, 5}, 30);
  // Sequence 0: 100 tokens after a prefix of 60; sequence 1: 200 tokens after none. Interval 64.
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = i32({0, 100, 300}, {3});
  call.initial_state = pool;
  call.state_indices = i32({7, -1}, {2});
  call.checkpoint_every_n_tokens = 64;
  call.state_checkpoints = pool;
  call.checkpoint_cu_starts = i32({1, 4}, {2});
  call.checkpoint_state_indices = i64({-5, 3, 0, 99, 6, -1, 2}, {7});
  call.prefix_lens = i64({60, 0}, {2});
  const GdnPrefilled got = gdn_prefill(std::move(call));
  CHECK_FALSE(got.output_state.defined());
  const Tensor& rows_of = got.state_checkpoints;
  // Absolute 64 and 128 of sequence 0 are its new tokens 4 and 68.
  CHECK(bytes(rows_of.at(3)) == bytes(prefill(part(inputs, 0, 4), pool.slice(7, 1)).output_state));
  CHECK(bytes(rows_of.at(0)) == bytes(prefill(part(inputs, 0, 68), pool.slice(7, 1)).output_state));
  // 64, 128 (skipped), 192 of sequence 1.
  CHECK(bytes(rows_of.at(6)) == bytes(prefill(part(inputs, 100, 64)).output_state));
  CHECK(bytes(rows_of.at(2)) == bytes(prefill(part(inputs, 100, 192)).output_state));
  for (const std::int64_t untouched : {1, 4, 5, 7}) CHECK(same_bits(rows_of.at(untouched), pool.at(untouched)));
}

TEST_CASE("E7: without a list the ordinal is the row; a row outside the pool is dropped; n + 1 starts are taken") {
  const GdnInputs inputs = rule_inputs(130, 2);
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = i32({0, 130}, {2});
  call.checkpoint_every_n_tokens = 64;
  call.state_checkpoints = Tensor::zeros(DType::f32, {3, 4, 3, 5});
  call.checkpoint_cu_starts = i32({1, -99}, {2});
  const GdnPrefilled got = gdn_prefill(call);
  CHECK(bytes(got.state_checkpoints.at(0)) == bytes(Tensor::zeros(DType::f32, {4, 3, 5})));
  CHECK(bytes(got.state_checkpoints.at(1)) == bytes(prefill(part(inputs, 0, 64)).output_state));
  CHECK(bytes(got.state_checkpoints.at(2)) == bytes(prefill(part(inputs, 0, 128)).output_state));
  call.state_checkpoints = Tensor::zeros(DType::f32, {3, 4, 3, 5});
  call.checkpoint_state_indices = i32({0, 3, 2}, {3});
  call.checkpoint_cu_starts = i32({1}, {1});
  CHECK(bytes(gdn_prefill(call).state_checkpoints.slice(0, 2)) == bytes(Tensor::zeros(DType::f32, {2, 4, 3, 5})));
}

TEST_CASE("E8: one padded pool read, written and checkpointed, in place and copied") {
  const GdnInputs inputs = rule_inputs(70, 2);
  const Tensor padded = Tensor::empty_padded(DType::bf16, {4, 4, 3, 5}, 67);
  std::memset(padded.raw(), 0x33, 4 * 67 * 2);
  fill(padded, 30);
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = i32({0, 70}, {2});
  call.initial_state = padded;
  call.state_indices = i32({2}, {1});
  call.output_state = padded;
  call.output_final_state = true;
  call.checkpoint_every_n_tokens = 64;
  call.state_checkpoints = padded;
  call.checkpoint_cu_starts = i32({0}, {1});
  call.checkpoint_state_indices = i32({1}, {1});
  const std::string before = bytes(padded);
  const GdnPrefilled copied = gdn_prefill(call);
  CHECK(bytes(padded) == before);
  CHECK(copied.output_state.raw() == copied.state_checkpoints.raw());
  call.output_state = Pool::in_place(padded);
  call.state_checkpoints = Pool::in_place(padded);
  const GdnPrefilled given = gdn_prefill(call);
  CHECK(given.output_state.raw() == padded.raw());
  CHECK(same_bits(given.output_state, copied.output_state));
  CHECK(bytes(padded.at(0)) + bytes(padded.at(3)) == before.substr(0, 120) + before.substr(360));
  CHECK_FALSE(same_bits(padded.at(1), padded.at(2)));
  for (std::int64_t s = 0; s < 4; ++s) {
    for (std::int64_t byte = 120; byte < 134; ++byte) CHECK(padded.raw()[s * 134 + byte] == std::byte{0x33});
  }
}

TEST_CASE("a given output_state without output_final_state is left and returned") {
  GdnPrefill call;
  call.inputs = rule_inputs(3, 2);
  call.cu_seqlens = i32({0, 3}, {2});
  const Tensor states = filled(DType::f32, {1, 4, 3, 5}, 30);
  const std::string before = bytes(states);
  call.output_state = Pool::in_place(states);
  const GdnPrefilled got = gdn_prefill(std::move(call));
  CHECK(got.output_state.raw() == states.raw());
  CHECK(bytes(states) == before);
}

TEST_CASE("empty calls: no sequences and no tokens, no batch, a pool of no rows") {
  GdnPrefill none;
  none.inputs = rule_inputs(0, 1);
  none.cu_seqlens = i32({0}, {1});
  none.output_final_state = true;
  const GdnPrefilled nothing = gdn_prefill(none);
  CHECK(nothing.output.shape() == Shape{0, 4, 3});
  CHECK(nothing.output_state.shape() == Shape{0, 4, 3, 5});
  none.cu_seqlens = i32({0, 0, 0}, {3});
  none.initial_state = filled(DType::bf16, {2, 4, 3, 5}, 3);
  CHECK(numbers(gdn_prefill(none).output_state) == numbers(none.initial_state));
  GdnDecode decoded = decode(rule_inputs(2, 1), Tensor::empty(DType::f32, {0, 4, 3, 5}), i32({0, -1}, {2}));
  for (const double number : numbers(gdn_decode(decoded).output)) CHECK(number == 0);
  decoded.inputs = rule_inputs(0, 1);
  for (Tensor* tensor : {&decoded.inputs.q, &decoded.inputs.k, &decoded.inputs.v, &decoded.inputs.g, &decoded.inputs.beta}) {
    Shape shape = tensor->shape();
    shape.insert(shape.begin() + 1, 1);
    *tensor = tensor->reshaped(shape);
  }
  decoded.state_indices = Tensor::empty(DType::i32, {0});
  CHECK(gdn_decode(decoded).output.shape() == Shape{0, 1, 4, 3});
}
