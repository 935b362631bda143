// Pools: given up, shared, copied or lent; strided, interleaved and one for several purposes (laws C9, E8).
#include <quire/ops.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <thread>

using namespace quire;
using namespace quire::test;

namespace {

const Index& three_tokens() {
  static const Index index = Index::make(i64({1, 2, 0, -1}, {2, 2}), i64({4, 1, 2, 0, 5, 3}, {2, 3}));
  return index;
}
Tensor values() { return filled(DType::f32, {2, 2, 2, 3}, 1); }
Tensor pool() { return filled(DType::f32, {6, 2, 3}, 2); }

// The bytes that the call should leave, from the laws: slots 1, 2 and 0 get the three real tokens' rows.
std::string expected_pool() {
  Tensor expected = pool();
  const auto put = [&](std::int64_t slot, std::int64_t b, std::int64_t i) {
    std::memcpy(expected.raw() + slot * 24, values().at(b).at(i).raw(), 24);
  };
  put(1, 0, 0);
  put(2, 0, 1);
  put(0, 1, 0);
  return bytes(expected);
}

GdnDecode decode_of(Pool states) {
  GdnDecode call;
  call.inputs = {filled(DType::f32, {2, 1, 1, 3}, 5), filled(DType::f32, {2, 1, 1, 3}, 6), filled(DType::f32, {2, 1, 1, 2}, 7), {}, {}, {}, {}};
  call.state_pool = std::move(states);
  call.state_indices = i32({3, 1}, {2});
  return call;
}

}  // namespace

TEST_CASE("extend: a sole owner is changed in place, a shared one is copied, a const one is copied, a lent one is changed") {
  {
    Tensor mine = pool();
    const std::byte* memory = mine.raw();
    const Extended result = extend(three_tokens(), values(), std::move(mine));
    CHECK(result.pool.raw() == memory);
    CHECK(bytes(result.pool) == expected_pool());
  }
  {
    Tensor mine = pool();
    const Tensor other = mine;
    const Extended result = extend(three_tokens(), values(), std::move(mine));
    CHECK(result.pool.raw() != other.raw());
    CHECK(bytes(result.pool) == expected_pool());
    CHECK(bytes(other) == bytes(pool()));
  }
  {
    const Tensor mine = pool();
    const Extended result = extend(three_tokens(), values(), mine);
    CHECK(result.pool.raw() != mine.raw());
    CHECK(bytes(result.pool) == expected_pool());
    CHECK(bytes(mine) == bytes(pool()));
  }
  {
    const Tensor mine = pool();
    const Tensor other = mine;
    const Extended result = extend(three_tokens(), values(), Pool::in_place(mine));
    CHECK(result.pool.raw() == mine.raw());
    CHECK(bytes(other) == expected_pool());
  }
  {
    const Tensor memory = pool();
    Tensor lent = Tensor::borrow(memory.raw(), DType::f32, {6, 2, 3});
    CHECK(extend(three_tokens(), values(), std::move(lent)).pool.raw() == memory.raw());
    CHECK(bytes(memory) == expected_pool());
  }
}

TEST_CASE("Pool: what it says of itself") {
  CHECK_FALSE(Pool().defined());
  Tensor mine = pool();
  const Tensor& as_const = mine;
  CHECK_FALSE(Pool(as_const).is_in_place());
  CHECK(Pool::in_place(as_const).is_in_place());
  Pool copied(as_const);
  CHECK(copied.given().raw() == mine.raw());
  const Tensor& target = copied.target();
  CHECK(target.raw() != mine.raw());
  CHECK(copied.target().raw() == target.raw());  // copied once
  CHECK(same_bits(target, mine));
  CHECK(Pool(std::move(mine)).is_in_place());
}

TEST_CASE("attend and the gated delta rule treat pools alike, and results are the same") {
  const Tensor q = filled(DType::f32, {2, 2, 4, 3}, 3);
  const Tensor k = values();
  const Tensor v = filled(DType::f32, {2, 2, 2, 5}, 4);
  const Tensor k_pool = pool();
  const Tensor v_pool = filled(DType::f32, {6, 2, 5}, 8);
  const Attended copied = attend(three_tokens(), q, k, v, k_pool, v_pool);
  CHECK(bytes(k_pool) == bytes(pool()));
  CHECK(bytes(copied.k_pool) == expected_pool());
  Tensor mine = k_pool.clone();
  const std::byte* memory = mine.raw();
  const Tensor lent = v_pool.clone();
  const Attended given = attend(three_tokens(), q, k, v, std::move(mine), Pool::in_place(lent));
  CHECK(given.k_pool.raw() == memory);
  CHECK(given.v_pool.raw() == lent.raw());
  CHECK(same_bits(given.out, copied.out));
  CHECK(same_bits(given.lse, copied.lse));
  CHECK(same_bits(given.k_pool, copied.k_pool));
  CHECK(same_bits(given.v_pool, copied.v_pool));

  const Tensor states = filled(DType::f32, {5, 1, 2, 3}, 9);
  const std::string before = bytes(states);
  const GdnStates decoded = gdn_decode(decode_of(states));
  CHECK(bytes(states) == before);
  CHECK(decoded.state_pool.raw() != states.raw());
  for (const std::int64_t untouched : {0, 2, 4}) CHECK(same_bits(decoded.state_pool.at(untouched), states.at(untouched)));
  for (const std::int64_t stored : {1, 3}) CHECK_FALSE(same_bits(decoded.state_pool.at(stored), states.at(stored)));
  const GdnStates in_place = gdn_decode(decode_of(Pool::in_place(states)));
  CHECK(in_place.state_pool.raw() == states.raw());
  CHECK(same_bits(states, decoded.state_pool));
  CHECK(same_bits(in_place.output, decoded.output));
}

TEST_CASE("a failed call changes nothing") {
  const Tensor mine = pool();
  const Tensor states = filled(DType::f32, {5, 1, 2, 3}, 9);
  const std::string pool_before = bytes(mine), states_before = bytes(states);
  CHECK(caught([&] { (void)extend(three_tokens(), filled(DType::f32, {2, 2, 2, 4}, 1), Pool::in_place(mine)); }).raised);
  CHECK(caught([&] { (void)extend(three_tokens(), filled(DType::f64, {2, 2, 2, 3}, 1), Pool::in_place(mine)); }).raised);
  CHECK(caught([&] {
          (void)attend(three_tokens(), filled(DType::f32, {2, 2, 2, 3}, 1), values(), values(), Pool::in_place(mine), Pool::in_place(mine));
        }).raised);
  CHECK(caught([&] {
          (void)attend(three_tokens(), filled(DType::f32, {2, 2, 2, 3}, 1), values(), values(), Pool::in_place(mine), Tensor());
        }).raised);
  GdnDecode bad = decode_of(Pool::in_place(states));
  bad.state_indices = i32({1}, {1});
  CHECK(caught([&] { (void)gdn_decode(std::move(bad)); }).raised);
  {
    // Results that may not be allocated.
    const Tensor good = values();
    GdnDecode call = decode_of(Pool::in_place(states));
    const Environment limit("QUIRE_MAX_MEMORY", "10");
    check_rejected([&] { (void)extend(three_tokens(), good, Pool::in_place(mine)); }, "seen", "144 bytes", "10 bytes");
    check_rejected([&] { (void)attend(three_tokens(), good, good, good, Pool::in_place(mine), mine); }, "out", "96 bytes", "10 bytes");
    check_rejected([&] { (void)gdn_decode(call); }, "output", "16 bytes", "10 bytes");
  }
  CHECK(bytes(mine) == pool_before);
  CHECK(bytes(states) == states_before);
}

TEST_CASE("a padded pool is taken, its gaps keep every bit") {
  const Tensor padded = Tensor::empty_padded(DType::f32, {6, 2, 3}, 10);
  std::memset(padded.raw(), 0x7b, 240);
  const Tensor dense = pool();
  for (std::int64_t s = 0; s < 6; ++s) std::memcpy(padded.raw() + s * 40, dense.raw() + s * 24, 24);
  const Extended result = extend(three_tokens(), values(), Pool::in_place(padded));
  CHECK(bytes(padded) == expected_pool());
  CHECK(same_bits(result.seen, extend(three_tokens(), values(), dense).seen));
  for (std::int64_t s = 0; s < 6; ++s) {
    for (std::int64_t byte = 24; byte < 40; ++byte) CHECK(padded.raw()[s * 40 + byte] == std::byte{0x7b});
  }
  // A copy of a padded pool is one of its elements.
  CHECK(bytes(extend(three_tokens(), values(), padded).pool) == expected_pool());
}

TEST_CASE("heads outermost: any strides that do not overlap") {
  // [H, N, D] in memory, [N, H, D] to the call.
  const Tensor memory = Tensor::zeros(DType::f32, {2, 6, 3});
  const Tensor turned = Tensor::borrow(memory.raw(), DType::f32, {6, 2, 3}, {3, 18, 1});
  fill(turned, 2);
  REQUIRE(bytes(turned) == bytes(pool()));
  // [S, B, H, D] values likewise.
  const Tensor value_memory = Tensor::zeros(DType::f32, {2, 2, 2, 3});
  const Tensor turned_values = Tensor::borrow(value_memory.raw(), DType::f32, {2, 2, 2, 3}, {6, 12, 3, 1});
  fill(turned_values, 1);
  REQUIRE(bytes(turned_values) == bytes(values()));
  const Extended result = extend(three_tokens(), turned_values, Pool::in_place(turned));
  CHECK(bytes(turned) == expected_pool());
  CHECK(same_bits(result.seen, extend(three_tokens(), values(), pool()).seen));
}

TEST_CASE("keys and values interleaved in one buffer [N, 2, H, D]") {
  const Tensor buffer = filled(DType::f32, {6, 2, 2, 3}, 12);
  const Tensor k_pool = Tensor::borrow(buffer.raw(), DType::f32, {6, 2, 3}, {12, 3, 1});
  const Tensor v_pool = Tensor::borrow(buffer.raw() + 24, DType::f32, {6, 2, 3}, {12, 3, 1});
  const Tensor q = filled(DType::f32, {2, 2, 4, 3}, 3);
  const Tensor v = filled(DType::f32, {2, 2, 2, 3}, 4);
  const Attended apart = attend(three_tokens(), q, values(), v, k_pool, v_pool);
  CHECK(apart.k_pool.is_dense());
  for (const bool values_first : {false, true}) {
    CAPTURE(values_first);
    // With the values in front, the pools' roles are turned round in memory.
    const Tensor both = values_first ? Tensor::zeros(DType::f32, {6, 2, 2, 3}) : buffer.clone();
    const Tensor keys = Tensor::borrow(both.raw() + (values_first ? 24 : 0), DType::f32, {6, 2, 3}, {12, 3, 1});
    const Tensor vals = Tensor::borrow(both.raw() + (values_first ? 0 : 24), DType::f32, {6, 2, 3}, {12, 3, 1});
    for (std::int64_t s = 0; values_first && s < 6; ++s) {
      std::memcpy(keys.raw() + s * 48, k_pool.raw() + s * 48, 24);
      std::memcpy(vals.raw() + s * 48, v_pool.raw() + s * 48, 24);
    }
    const Attended joined = attend(three_tokens(), q, values(), v, Pool::in_place(keys), Pool::in_place(vals));
    CHECK(joined.k_pool.raw() == keys.raw());
    CHECK(same_bits(joined.out, apart.out));
    CHECK(same_bits(joined.lse, apart.lse));
    CHECK(same_bits(keys, apart.k_pool));
    CHECK(same_bits(vals, apart.v_pool));
  }
}

TEST_CASE("layers side by side in one buffer [layers, N, H, D] are apart") {
  const Tensor buffer = filled(DType::f32, {2, 6, 2, 3}, 12);
  const Tensor q = filled(DType::f32, {2, 2, 2, 3}, 3);
  const Attended apart = attend(three_tokens(), q, values(), values(), buffer.at(0).clone(), buffer.at(1).clone());
  const Attended joined = attend(three_tokens(), q, values(), values(), Pool::in_place(buffer.at(0)), Pool::in_place(buffer.at(1)));
  CHECK(same_bits(joined.out, apart.out));
  CHECK(same_bits(buffer.at(0), apart.k_pool));
  CHECK(same_bits(buffer.at(1), apart.v_pool));
}

TEST_CASE("one pool copied for both keeps being two: keys and values of equal content") {
  const Tensor both = pool();
  const Attended result = attend(three_tokens(), values(), values(), filled(DType::f32, {2, 2, 2, 3}, 4), both, both);
  CHECK(result.k_pool.raw() != result.v_pool.raw());
  CHECK(bytes(result.k_pool) == expected_pool());
  CHECK(bytes(both) == bytes(pool()));
}

TEST_CASE("calls are re-entrant: threads with pools of their own") {
  const Tensor q = filled(DType::f32, {2, 2, 4, 3}, 3);
  const Attended expected = attend(three_tokens(), q, values(), values(), pool(), pool());
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int n = 0; n < 50; ++n) {
          const Attended result = attend(three_tokens(), q, values(), values(), pool(), pool());
          wrong[t] += !same_bits(result.out, expected.out) || !same_bits(result.k_pool, expected.k_pool);
        }
      });
    }
  }
  CHECK(wrong == std::vector<int>(4));
}
