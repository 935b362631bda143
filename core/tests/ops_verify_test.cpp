// gdn_verify: the recurrence along a draft's paths (law F2).
#include "gdn_test_helpers.h"

#include <doctest/doctest.h>

using namespace quire;
using namespace quire::test;

namespace {

// A draft of one lane at the given positions; its own slots and the table play no part in the rule.
Index draft(const std::vector<std::int64_t>& pos, const std::vector<std::uint8_t>& sees, std::int64_t batch = 1) {
  const auto seq = static_cast<std::int64_t>(pos.size()) / batch;
  return Index::make(i64(pos, {batch, seq}), Tensor::zeros(DType::i64, {batch, 2}))
      .draft(Tensor::zeros(DType::i64, {batch, seq}), Tensor::of_bools(sees, {batch, seq, seq}));
}
std::vector<std::uint8_t> chain(std::int64_t seq) {
  std::vector<std::uint8_t> sees;
  for (std::int64_t i = 0; i < seq; ++i) {
    for (std::int64_t j = 0; j < seq; ++j) sees.push_back(j <= i);
  }
  return sees;
}
// The named tokens of [T, ...], one after another.
GdnInputs path(const GdnInputs& inputs, const std::vector<std::int64_t>& tokens) {
  GdnInputs cut = inputs;
  for (Tensor* tensor : {&cut.q, &cut.k, &cut.v, &cut.g, &cut.beta}) {
    Shape shape = tensor->shape();
    shape[0] = static_cast<std::int64_t>(tokens.size());
    Tensor picked = Tensor::empty(tensor->dtype(), shape);
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      const std::string row = bytes(tensor->at(tokens[n]));
      std::memcpy(picked.raw() + n * row.size(), row.data(), row.size());
    }
    *tensor = picked;
  }
  return cut;
}

}  // namespace

TEST_CASE("F2: a chain is prefill of the same tokens, of the same scale and l2norm") {
  for (const DType state : {DType::f32, DType::bf16, DType::f8_e4m3fn}) {
    for (const bool l2norm : {false, true}) {
      CAPTURE(std::string(name(state)));
      CAPTURE(l2norm);
      GdnInputs inputs = rule_inputs(5, 3);
      inputs.use_qk_l2norm = l2norm;
      inputs.scale = 0.3;
      const Tensor pool = filled(state, {7, 4, 3, 5}, 30);
      const GdnStates got = gdn_verify(draft({10, 11, 12, 13, 14}, chain(5)), as_batch(inputs, 1), pool, i32({6}, {1}), i32({0, 1, 2, 3, 4}, {1, 5}));
      GdnPrefill whole;
      whole.inputs = inputs;
      whole.cu_seqlens = i32({0, 5}, {2});
      whole.initial_state = pool.slice(6, 1);
      CHECK(bytes(got.output) == bytes(gdn_prefill(whole).output));
      for (std::int64_t i = 0; i < 5; ++i) {
        CAPTURE(i);
        whole.inputs = part(inputs, 0, i + 1);
        whole.cu_seqlens = i64({0, i + 1}, {2});
        whole.output_state = Tensor::zeros(state, {1, 4, 3, 5});
        whole.output_final_state = true;
        CHECK(bytes(got.state_pool.at(i)) == bytes(gdn_prefill(whole).output_state));
      }
      CHECK(same_bits(got.state_pool.slice(5, 2), pool.slice(5, 2)));
    }
  }
}

TEST_CASE("F2: defaults are decode's") {
  GdnInputs inputs = rule_inputs(1, 3);
  const Tensor pool = filled(DType::f32, {2, 4, 3, 5}, 30);
  GdnDecode call;
  call.inputs = as_batch(inputs, 1);
  call.state_pool = pool;
  call.state_indices = i32({1}, {1});
  call.output_state_indices = i32({0}, {1});
  const GdnStates decoded = gdn_decode(call);
  const GdnStates got = gdn_verify(draft({4}, {1}), as_batch(inputs, 1), pool, i32({1}, {1}), i32({0}, {1, 1}));
  CHECK(same_bits(got.output, decoded.output));
  CHECK(same_bits(got.state_pool, decoded.state_pool));
}

TEST_CASE("F2: along each path of a tree the states are those of the path alone") {
  // 0 -> 1 -> 3, 0 -> 2 -> 4, and 5 a second root; places out of order of position, ancestors seen as trees see them.
  const std::vector<std::int64_t> pos = {7, 8, 8, 9, 9, 7};
  const std::vector<std::uint8_t> sees = {1, 0, 0, 0, 0, 0,   //
                                          1, 1, 0, 0, 0, 0,   //
                                          1, 0, 1, 0, 0, 0,   //
                                          1, 1, 0, 1, 0, 0,   //
                                          1, 0, 1, 0, 1, 0,   //
                                          0, 0, 0, 0, 0, 1};
  GdnInputs inputs = rule_inputs(6, 9);
  inputs.use_qk_l2norm = false;
  const Tensor pool = filled(DType::f32, {8, 4, 3, 5}, 30);
  const GdnStates got = gdn_verify(draft(pos, sees), as_batch(inputs, 1), pool, i64({7}, {1}), i64({0, 1, 2, 3, 4, 5}, {1, 6}));
  const std::vector<std::vector<std::int64_t>> paths = {{0}, {0, 1}, {0, 2}, {0, 1, 3}, {0, 2, 4}, {5}};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    CAPTURE(i);
    const GdnPrefilled alone = prefill(path(inputs, paths[i]), pool.slice(7, 1));
    const auto token = static_cast<std::int64_t>(i);
    CHECK(bytes(got.state_pool.at(token)) == bytes(alone.output_state));
    CHECK(bytes(got.output.at(0).at(token)) == bytes(alone.output.at(static_cast<std::int64_t>(paths[i].size()) - 1)));
  }
  CHECK(same_bits(got.state_pool.slice(6, 2), pool.slice(6, 2)));
  // The window plays no part.
  const GdnStates windowed = gdn_verify(draft(pos, sees).window(1), as_batch(inputs, 1), pool, i64({7}, {1}), i64({0, 1, 2, 3, 4, 5}, {1, 6}));
  CHECK(same_bits(windowed.state_pool, got.state_pool));
}

TEST_CASE("F2: the parent is the greatest smaller position seen, wherever it stands") {
  // Token 2 (position 5) sees tokens 0 (position 3) and 1 (position 9, later): its parent is 0. A padded token is none.
  GdnInputs inputs = rule_inputs(4, 9);
  inputs.use_qk_l2norm = false;
  const Tensor pool = filled(DType::f32, {6, 4, 3, 5}, 30);
  const GdnStates got = gdn_verify(draft({3, 9, 5, -1}, {1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}), as_batch(inputs, 1), pool, i32({5}, {1}),
                                   i32({0, 1, 2, 3}, {1, 4}));
  CHECK(bytes(got.state_pool.at(2)) == bytes(prefill(path(inputs, {0, 2}), pool.slice(5, 1)).output_state));
  CHECK(bytes(got.state_pool.at(1)) == bytes(prefill(path(inputs, {1}), pool.slice(5, 1)).output_state));  // sees only itself of the real ones
  CHECK(same_bits(got.state_pool.slice(3, 3), pool.slice(3, 3)));
  for (const double number : numbers(got.output.at(0).at(3))) CHECK(number == 0);
}

TEST_CASE("F2: keeping a path is naming the kept token's slot; a lane may store in the row it reads") {
  GdnInputs inputs = exact_inputs(6, 4);
  inputs.use_qk_l2norm = false;
  const Tensor pool = Tensor::zeros(DType::f32, {4, 4, 3, 5});
  const GdnStates first = gdn_verify(draft({0, 1, 2}, chain(3)), as_batch(part(inputs, 0, 3), 1), pool, i32({2}, {1}), i32({0, 1, 2}, {1, 3}));
  // Two tokens are kept: the next call reads slot 1 and stores over it.
  const GdnStates second = gdn_verify(draft({2, 3}, chain(2)), as_batch(part(inputs, 3, 2), 1), first.state_pool, i32({1}, {1}), i32({3, 1}, {1, 2}));
  CHECK(bytes(second.state_pool.at(1)) == bytes(prefill(path(inputs, {0, 1, 3, 4})).output_state));
  CHECK(bytes(second.state_pool.at(3)) == bytes(prefill(path(inputs, {0, 1, 3})).output_state));
}

TEST_CASE("E6 under a draft: a lane whose read row is outside the pool is padded; slots outside are not stored") {
  const GdnInputs inputs = rule_inputs(4, 9);
  const Tensor pool = filled(DType::f32, {4, 4, 3, 5}, 30);
  const std::vector<std::uint8_t> sees = {1, 0, 1, 1, 1, 0, 1, 1};
  for (const std::int32_t outside : {-1, 4, -9}) {
    const GdnStates got = gdn_verify(draft({0, 1, 0, 1}, sees, 2), as_batch(inputs, 2), pool, i32({outside, 3}, {2}), i32({0, 1, 4, -1}, {2, 2}));
    CHECK(same_bits(got.state_pool, pool));
    for (const double number : numbers(got.output.at(0))) CHECK(number == 0);
    GdnInputs alone = part(inputs, 2, 2);
    alone.use_qk_l2norm = true;
    CHECK(bytes(got.output.at(1)) == bytes(prefill(alone, pool.slice(3, 1)).output));
  }
}

TEST_CASE("F2: what is rejected") {
  const GdnInputs two = as_batch(rule_inputs(4, 9), 2);
  const Tensor pool = filled(DType::f32, {6, 4, 3, 5}, 30);
  const std::vector<std::uint8_t> sees = {1, 0, 1, 1, 1, 0, 1, 1};
  const Index lanes = draft({0, 1, 0, 1}, sees, 2);
  const Tensor read = i32({4, 5}, {2});
  const Tensor slots = i32({0, 1, 2, 3}, {2, 2});
  check_rejected([&] { (void)gdn_verify(rows(4, {2, 2}), two, pool, read, slots); }, "index", "no draft", "a draft");
  const Index twins = draft({0, 1, 1, 2}, {1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1});
  check_rejected([&] { (void)gdn_verify(twins, as_batch(rule_inputs(4, 9), 1), pool, i32({5}, {1}), i32({0, 1, 2, 3}, {1, 4})); }, "index",
                 "token 3 of lane 0 sees two tokens of position 1", "one parent");
  check_rejected([&] { (void)gdn_verify(lanes, two, pool, read, i32({0, 1, 1, 3}, {2, 2})); }, "state_slots", "slot 1 twice", "distinct");
  check_rejected([&] { (void)gdn_verify(lanes, two, pool, read, i32({0, 5, 2, 3}, {2, 2})); }, "state_slots", "slot 5 of lane 0", "no other lane's read row");
  check_rejected([&] { (void)gdn_verify(lanes, two, pool, i32({4, 4}, {2}), i32({4, 1, 2, 3}, {2, 2})); }, "state_slots", "slot 4", "no other lane's read row");
  check_rejected([&] { (void)gdn_verify(lanes, two, pool, i32({4}, {1}), slots); }, "state_indices", "i32[1]", "[2]");
  check_rejected([&] { (void)gdn_verify(lanes, two, pool, read, i32({0, 1}, {2, 1})); }, "state_slots", "i32[2, 1]", "[2, 2]");
  check_rejected([&] { (void)gdn_verify(lanes, two, Tensor(), read, slots); }, "state_pool", "nothing", "[rows, 4, 3, 5]");
  check_rejected([&] { (void)gdn_verify(lanes, as_batch(rule_inputs(4, 9), 1), pool, read, slots); }, "q", "f32[1, 4, 4, 5]", "2, 2");
  // A lane may store in the row it reads, and slots outside the pool may repeat.
  CHECK_FALSE(caught([&] { (void)gdn_verify(lanes, two, pool, read, i32({4, -1, -1, 5}, {2, 2})); }).raised);
  CHECK_FALSE(caught([&] { (void)gdn_verify(lanes, two, pool, read, i32({9, 9, 0, 1}, {2, 2})); }).raised);
}
