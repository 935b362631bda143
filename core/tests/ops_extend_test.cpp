// extend by hand: what is stored, what is seen (laws C1-C8).
#include <quire/ops.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <limits>

using namespace quire;
using namespace quire::test;

namespace {

// A pool of n slots of one number each: 100, 101, ...
Tensor hundreds(std::int64_t n) {
  Tensor pool = Tensor::empty(DType::f32, {n, 1});
  for (std::int64_t s = 0; s < n; ++s) pool.data<float>()[s] = static_cast<float>(100 + s);
  return pool;
}

}  // namespace

TEST_CASE("C2-C5: stores, then what the lane sees") {
  // Positions 1 and 2 of a row whose slots are 4, 1, 2 and a hole at column 3.
  const Index index = Index::make(i64({1, 2}, {1, 2}), i64({4, 1, 2, -1}, {1, 4}));
  const Extended result = extend(index, f32({10, 20}, {1, 2, 1}), hundreds(6));
  CHECK(result.seen.shape() == Shape{1, 4, 1});
  CHECK(numbers(result.seen) == Numbers{104, 10, 20, 0});
  CHECK(numbers(result.pool) == Numbers{100, 10, 20, 103, 104, 105});
  // Under a window of one, column 0 is seen by no token.
  CHECK(numbers(extend(index.window(1), f32({10, 20}, {1, 2, 1}), hundreds(6)).seen) == Numbers{0, 10, 20, 0});
}

TEST_CASE("C5: between two tokens' windows a column is zero") {
  const Index index = Index::make(i64({1, 5}, {1, 2}), i64({0, 1, 2, 3, 4, 5, 6}, {1, 7})).window(2);
  CHECK(numbers(extend(index, f32({-1, -5}, {1, 2, 1}), hundreds(7)).seen) == Numbers{100, -1, 0, 0, 104, -5, 0});
}

TEST_CASE("C2: lanes of one row see each other's stores") {
  const Index index = Index::make(i64({0, 1, 2}, {3, 1}), i64({2, 0, 1}, {1, 3}), i64({0, 0, 0}, {3}));
  const Extended result = extend(index, f32({7, 8, 9}, {3, 1, 1}), hundreds(3));
  CHECK(numbers(result.pool) == Numbers{8, 9, 7});
  CHECK(numbers(result.seen) == Numbers{7, 0, 0, 7, 8, 0, 7, 8, 9});
}

TEST_CASE("A2, C3: what addresses nothing stores nothing and reads as zero") {
  const Index index = Index::make(i64({0, 1, 2, 3, 9, -1}, {1, 6}), i64({-1, 6, 2, -7}, {1, 4}));
  const Extended result = extend(index, f32({10, 11, 12, 13, 19, 99}, {1, 6, 1}), hundreds(6));
  CHECK(numbers(result.pool) == Numbers{100, 101, 12, 103, 104, 105});
  CHECK(numbers(result.seen) == Numbers{0, 0, 12, 0});
  // A row outside the table, and a lane of padding.
  const Index lanes = Index::make(i64({0, 0}, {2, 1}), i64({3}, {1, 1}), i64({1, -1}, {2}));
  const Extended none = extend(lanes, f32({10, 11}, {2, 1, 1}), hundreds(4));
  CHECK(numbers(none.pool) == Numbers{100, 101, 102, 103});
  CHECK(numbers(none.seen) == Numbers{0, 0});
}

TEST_CASE("C3: in blocks only the token that closes one stores") {
  const Index index = Index::make(i64({2, 3, 4, 5}, {1, 4}), i64({0, 1, 2, 3, 4, 5}, {1, 6}), {}, {{2, i64({5, 3, -1}, {1, 3})}}).every(2);
  const Extended result = extend(index, f32({2, 3, 4, 5}, {1, 4, 1}), hundreds(6));
  CHECK(numbers(result.pool) == Numbers{100, 101, 102, 3, 104, 105});
  CHECK(numbers(result.seen) == Numbers{105, 3, 0});
}

TEST_CASE("C6: a selection reads the chosen columns, in order") {
  const Index index = Index::make(i64({1, 2}, {1, 2}), i64({4, 1, 2, -1}, {1, 4})).select(i64({1, 0, 2, 0, 0, 3, 1, -1}, {1, 2, 4}));
  const Extended result = extend(index, f32({10, 20}, {1, 2, 1}), hundreds(6));
  CHECK(result.seen.shape() == Shape{1, 2, 4, 1});
  CHECK(numbers(result.seen) == Numbers{10, 104, 0, 104, 104, 0, 10, 0});
  CHECK(numbers(result.pool) == Numbers{100, 10, 20, 103, 104, 105});
}

TEST_CASE("C7: a draft's columns are the table's, then its values verbatim") {
  const Index index = Index::make(i64({2, 3, -1}, {1, 3}), i64({0, 1, 2, 3}, {1, 4})).draft(i64({5, 99, 4}, {1, 3}), Tensor::zeros(DType::boolean, {1, 3, 3}));
  const Extended result = extend(index, f32({20, 30, 40}, {1, 3, 1}), hundreds(6));
  CHECK(result.seen.shape() == Shape{1, 7, 1});
  CHECK(numbers(result.seen) == Numbers{100, 101, 0, 0, 20, 30, 40});
  CHECK(numbers(result.pool) == Numbers{100, 101, 102, 103, 104, 20});
  // B7: a draft token stores at its own slot whatever its position.
  const Index far = Index::make(i64({50}, {1, 1}), i64({0}, {1, 1})).draft(i64({1}, {1, 1}), bools({1}, {1, 1, 1}));
  CHECK(numbers(extend(far, f32({7}, {1, 1, 1}), hundreds(2)).pool) == Numbers{100, 7});
}

TEST_CASE("C7: a whole index needs no pool and returns a given one untouched") {
  const Tensor values = f32({1, 2, 3, 4, 5, 6}, {2, 3, 1});
  const Index index = Index::whole(2, 3, Integers{2, 3});
  const Extended result = extend(index, values, {});
  CHECK(numbers(result.seen) == Numbers{1, 2, 3, 4, 5, 6});
  CHECK_FALSE(result.pool.defined());
  const Tensor pool = hundreds(2);
  CHECK(numbers(extend(index, values, pool).pool) == Numbers{100, 101});
  CHECK(extend(index, values, Pool::in_place(pool)).pool.raw() == pool.raw());
  CHECK(numbers(pool) == Numbers{100, 101});
  // Blocks: the values of the tokens that close them. Lane 0 holds positions 0 and 1 at places 1 and 2.
  CHECK(numbers(extend(index.every(2), values, {}).seen) == Numbers{3, 0, 5, 0});
  const Index chosen = index.select(i64({1, 1, 2, 0, 1, 1}, {2, 3, 1}));
  CHECK(numbers(extend(chosen, values, {}).seen) == Numbers{0, 2, 3, 4, 5, 5});
  CHECK(numbers(extend(packed(3, {{1, 2}, {3}}), values, {}).seen) == Numbers{1, 2, 3, 4, 5, 6});
}

TEST_CASE("C1: any dtype and width, bit for bit") {
  for (std::int32_t d = 0; d < QUIRE_DTYPE_COUNT; ++d) {
    const auto dtype = static_cast<DType>(d);
    CAPTURE(std::string(name(dtype)));
    // Every bit pattern is a value: NaN payloads, negative zeros, bools other than 0 and 1.
    Tensor values = Tensor::empty(dtype, {1, 2, 3, 5});
    for (std::int64_t i = 0; i < 30 * size_of(dtype); ++i) values.raw()[i] = static_cast<std::byte>(mixed(static_cast<std::uint64_t>(i)) | 0x80);
    const Tensor pool = Tensor::zeros(dtype, {4, 3, 5});
    const Extended result = extend(Index::make(i64({0, 1}, {1, 2}), i64({3, 1}, {1, 2})), values, pool);
    CHECK(bytes(result.pool.at(3)) == bytes(values.at(0).at(0)));
    CHECK(bytes(result.pool.at(1)) == bytes(values.at(0).at(1)));
    CHECK(bytes(result.pool.at(0)) == bytes(pool.at(0)));
    CHECK(bytes(result.seen) == bytes(values));
  }
  const Extended scalars = extend(rows(2, {2}), i32({3, 4}, {1, 2}), i32({0, 0}, {2}));  // rows without axes
  CHECK(whole_numbers(scalars.seen) == Integers{3, 4});
  CHECK(whole_numbers(scalars.pool) == Integers{3, 4});
}

TEST_CASE("C8: what stands behind a zeroed column changes no bit") {
  const Index index = Index::make(i64({2}, {1, 1}), i64({0, 1, 2, 3}, {1, 4})).window(2);
  Tensor poisoned = hundreds(6);
  for (const std::int64_t s : {0, 3, 4, 5}) poisoned.data<float>()[s] = std::numeric_limits<float>::quiet_NaN();
  const Tensor values = f32({7}, {1, 1, 1});
  CHECK(same_bits(extend(index, values, poisoned).seen, extend(index, values, hundreds(6)).seen));
}

TEST_CASE("C4: two tokens at one slot leave one of their stores, all other slots are exact") {
  const Index index = Index::make(i64({0, 0, 1}, {1, 3}), i64({2, 0}, {1, 2}));
  const Numbers pool = numbers(extend(index, f32({5, 6, 7}, {1, 3, 1}), hundreds(4)).pool);
  CHECK((pool[2] == 5 || pool[2] == 6));
  CHECK(pool[0] == 7);
  CHECK(pool[1] == 101);
  CHECK(pool[3] == 103);
}

TEST_CASE("empty things: rows of no elements, pools of no slots") {
  const Index index = rows(2, {2});
  const Extended no_width = extend(index, Tensor::empty(DType::f32, {1, 2, 0}), Tensor::empty(DType::f32, {2, 0}));
  CHECK(no_width.seen.shape() == Shape{1, 2, 0});
  const Extended no_slots = extend(index, f32({1, 2}, {1, 2, 1}), Tensor::empty(DType::f32, {0, 1}));
  CHECK(numbers(no_slots.seen) == Numbers{0, 0});
  CHECK(no_slots.pool.shape() == Shape{0, 1});
  const Attended attended = attend(index, f32({1, 2}, {1, 2, 1, 1}), f32({1, 2}, {1, 2, 1, 1}), f32({1, 2}, {1, 2, 1, 1}),
                                   Tensor::empty(DType::f32, {0, 1, 1}), Tensor::empty(DType::f32, {0, 1, 1}));
  CHECK(numbers(attended.out) == Numbers{0, 0});  // holes: zero values under the weight of a zero score
  CHECK(attended.lse.number(Shape{0, 0, 0}) == 0);
}
