// What the index's builders reject: the argument's name, what was given, what is allowed (laws A).
#include <quire/index.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <limits>

using namespace quire;
using namespace quire::test;

namespace {
Tensor zeros(Shape shape, DType dtype = DType::i64) { return Tensor::zeros(dtype, std::move(shape)); }
constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
}  // namespace

TEST_CASE("make: pos") {
  const auto make = [](const Tensor& pos) { return [=] { Index::make(pos, zeros({2, 4})); }; };
  check_rejected(make({}), "pos", "nothing", "i64 [B, S]");
  check_rejected(make(zeros({2})), "pos", "i64[2]", "i64 [B, S]");
  check_rejected(make(zeros({2, 1, 1})), "pos", "i64[2, 1, 1]", "i64 [B, S]");
  check_rejected(make(zeros({0, 3})), "pos", "i64[0, 3]", "no empty axis");
  check_rejected(make(zeros({2, 0})), "pos", "i64[2, 0]", "no empty axis");
  check_rejected(make(zeros({2, 3}, DType::i32)), "pos", "i32[2, 3]", "i64");
  check_rejected(make(zeros({2, 3}, DType::f32)), "pos", "f32[2, 3]", "i64");
  const Tensor memory = zeros({8});
  check_rejected(make(Tensor::borrow(memory.raw(), DType::i64, {2, 3}, {1, 2})), "pos", "[1, 2]", "dense innermost axis");
  check_rejected(make(Tensor::borrow(memory.raw(), DType::i64, {2, 3}, {2, 1})), "pos", "[2, 1]", "not overlap");
  check_rejected(make(Tensor::borrow(memory.raw(), DType::i64, {2, 3}, {0, 1})), "pos", "[0, 1]", "not overlap");
  check_rejected(make(Tensor::borrow(memory.raw(), DType::i64, {2, 3}, {-3, 1})), "pos", "[-3, 1]", "not overlap");
  check_rejected(make(Tensor::borrow(memory.raw(), DType::i64, {2, 3}, {greatest, 1})), "pos", "9223372036854775807", "2^63");
  check_rejected(make(Tensor::borrow(nullptr, DType::i64, {2, 3})), "pos", "null", "memory");
}

TEST_CASE("make: table and row") {
  const auto make = [](const Tensor& table, const Tensor& row) { return [=] { Index::make(zeros({2, 3}), table, row); }; };
  check_rejected(make({}, {}), "table", "nothing", "i64 [R, C]");
  check_rejected(make(zeros({2, 4}, DType::i32), {}), "table", "i32[2, 4]", "i64");
  check_rejected(make(zeros({8}), {}), "table", "i64[8]", "i64 [R, C]");
  check_rejected(make(zeros({2, 0}), {}), "table", "i64[2, 0]", "no empty axis");
  check_rejected(make(zeros({0, 4}), zeros({2})), "table", "i64[0, 4]", "no empty axis");
  check_rejected(make(zeros({3, 4}), {}), "table", "3 rows", "2 rows");
  check_rejected(make(zeros({3, 4}), zeros({3})), "row", "i64[3]", "i64 [2]");
  check_rejected(make(zeros({3, 4}), zeros({2, 1})), "row", "i64[2, 1]", "i64 [2]");
  check_rejected(make(zeros({3, 4}), zeros({2}, DType::i32)), "row", "i32[2]", "i64 [2]");
  // A lone axis may have any stride that keeps elements apart.
  const Tensor memory = i64({1, 9, 0}, {3});
  const Index index = Index::make(zeros({2, 3}), zeros({2, 4}), Tensor::borrow(memory.raw(), DType::i64, {2}, {2}));
  CHECK(whole_numbers(index.row()) == Integers{1, 0});
}

TEST_CASE("make: every") {
  const auto make = [](std::vector<BlockTable> every) { return [=] { Index::make(zeros({2, 3}), zeros({2, 4}), {}, every); }; };
  check_rejected(make({{1, zeros({2, 2})}}), "every", "blocks of 1", "2 or more");
  check_rejected(make({{0, zeros({2, 2})}}), "every", "blocks of 0", "2 or more");
  check_rejected(make({{-2, zeros({2, 2})}}), "every", "blocks of -2", "2 or more");
  check_rejected(make({{2, zeros({2, 2})}, {3, zeros({2, 2})}, {2, zeros({2, 1})}}), "every", "blocks of 2 positions twice", "once");
  check_rejected(make({{2, {}}}), "every", "nothing", "i64 [2, C_m] for blocks of 2");
  check_rejected(make({{2, zeros({3, 2})}}), "every", "i64[3, 2]", "i64 [2, C_m]");
  check_rejected(make({{2, zeros({2, 0})}}), "every", "i64[2, 0]", "i64 [2, C_m]");
  check_rejected(make({{2, zeros({4})}}), "every", "i64[4]", "i64 [2, C_m]");
  check_rejected(make({{2, zeros({2, 2})}, {3, zeros({2, 2}, DType::i32)}}), "every", "i32[2, 2]", "blocks of 3");
}

TEST_CASE("rows") {
  check_rejected([] { rows(0, {1}); }, "context", "0", "1 or more");
  check_rejected([] { rows(-4, {1}); }, "context", "-4", "1 or more");
  check_rejected([] { rows(4, {}); }, "lens", "no lane", "one length");
  check_rejected([] { rows(4, {1, -1}); }, "lens", "-1", "0 to the context, 4");
  check_rejected([] { rows(4, {1, 5}); }, "lens", "5", "0 to the context, 4");
  check_rejected([] { rows(4, {0, 0}); }, "lens", "all lengths zero", "1 or more");
  check_rejected([] { rows(4, {1}, {1}); }, "every", "blocks of 1", "2 or more");
  check_rejected([] { rows(4, {1}, {2, 2}); }, "every", "twice", "once");
  // No allocation of this size is tried.
  check_rejected([] { rows(std::int64_t{1} << 50, {1, 1}); }, "context", "i64[2, 1125899906842624]", "bytes");
  check_rejected([] { rows(greatest, {1, 1}); }, "context", "9223372036854775807", "");
  CHECK(rows(4, {1}, {greatest}).block_table(greatest)->blocks.shape() == Shape{1, 1});
}

TEST_CASE("whole and packed") {
  check_rejected([] { Index::whole(0, 3); }, "batch", "0", "1 or more");
  check_rejected([] { Index::whole(-1, 3); }, "batch", "-1", "1 or more");
  check_rejected([] { Index::whole(2, 0); }, "seq", "0", "1 or more");
  check_rejected([] { Index::whole(2, 3, Integers{1}); }, "lens", "1 lengths", "2, one per lane");
  check_rejected([] { Index::whole(2, 3, Integers{1, -1}); }, "lens", "-1", "0 or more");
  check_rejected([] { Index::whole(2, 3, Integers{1, 4}); }, "lens", "4", "3 together");
  check_rejected([] { Index::whole(std::int64_t{1} << 40, std::int64_t{1} << 40); }, "seq", "1099511627776", "");
  check_rejected([] { Index::whole(1 << 30, 1 << 20); }, "seq", "i64[1073741824, 1048576]", "bytes");
  check_rejected([] { packed(0, {{1}}); }, "seq", "0", "1 or more");
  check_rejected([] { packed(3, {}); }, "lens", "no lane", "one lane");
  check_rejected([] { packed(3, {{1}, {2, -1}}); }, "lens", "[2, -1]", "0 or more");
  check_rejected([] { packed(3, {{1}, {2, 2}}); }, "lens", "[2, 2]", "3 together");
  check_rejected([] { packed(greatest, {{greatest, greatest}}); }, "lens", "9223372036854775807", "");
  check_rejected([] { packed(std::int64_t{1} << 50, {{1}}); }, "seq", "1125899906842624", "bytes");
}

TEST_CASE("window and select") {
  const Index index = rows(4, {2, 2});
  check_rejected([&] { (void)index.window(0); }, "window", "0", "1 or more");
  check_rejected([&] { (void)index.window(-3); }, "window", "-3", "1 or more");
  const auto select = [&](const Tensor& columns) { return [&index, columns] { (void)index.select(columns); }; };
  check_rejected(select({}), "select", "nothing", "i64 [2, 2, k]");
  check_rejected(select(zeros({2, 2, 0})), "select", "i64[2, 2, 0]", "k of 1 or more");
  check_rejected(select(zeros({2, 2})), "select", "i64[2, 2]", "i64 [2, 2, k]");
  check_rejected(select(zeros({2, 3, 1})), "select", "i64[2, 3, 1]", "i64 [2, 2, k]");
  check_rejected(select(zeros({1, 2, 1})), "select", "i64[1, 2, 1]", "i64 [2, 2, k]");
  check_rejected(select(zeros({2, 2, 1}, DType::i32)), "select", "i32[2, 2, 1]", "i64 [2, 2, k]");
  const Index draft = index.draft(zeros({2, 2}), zeros({2, 2, 2}, DType::boolean));
  check_rejected([&] { (void)draft.select(zeros({2, 2, 1})); }, "select", "draft", "any other index");
}

TEST_CASE("draft") {
  const Index index = rows(4, {2, 2}, {2});
  const Tensor slots = zeros({2, 2});
  const Tensor sees = zeros({2, 2, 2}, DType::boolean);
  check_rejected([&] { (void)Index::whole(2, 2).draft(slots, sees); }, "draft", "whole", "tabled");
  check_rejected([&] { (void)packed(2, {{2}, {2}}).draft(slots, sees); }, "draft", "packed", "tabled");
  check_rejected([&] { (void)index.every(2).draft(slots, sees); }, "draft", "blocks of 2", "positions");
  check_rejected([&] { (void)index.select(zeros({2, 2, 1})).draft(slots, sees); }, "draft", "selection", "without one");
  CHECK(index.draft(slots, sees).draft_tokens().has_value());  // having block tables is no obstacle
  check_rejected([&] { (void)index.draft({}, sees); }, "slots", "nothing", "i64 [2, 2]");
  check_rejected([&] { (void)index.draft(zeros({2, 3}), sees); }, "slots", "i64[2, 3]", "i64 [2, 2]");
  check_rejected([&] { (void)index.draft(zeros({2, 2}, DType::i32), sees); }, "slots", "i32[2, 2]", "i64 [2, 2]");
  check_rejected([&] { (void)index.draft(slots, {}); }, "sees", "nothing", "bool [2, 2, 2]");
  check_rejected([&] { (void)index.draft(slots, zeros({2, 2}, DType::boolean)); }, "sees", "bool[2, 2]", "bool [2, 2, 2]");
  check_rejected([&] { (void)index.draft(slots, zeros({2, 2, 3}, DType::boolean)); }, "sees", "bool[2, 2, 3]", "bool [2, 2, 2]");
  check_rejected([&] { (void)index.draft(slots, zeros({2, 2, 2}, DType::u8)); }, "sees", "u8[2, 2, 2]", "bool [2, 2, 2]");
}

TEST_CASE("every and advance") {
  const Index index = rows(4, {2, 2}, {2, 4});
  const Tensor columns = zeros({2, 2, 1});
  check_rejected([&] { (void)index.every(0); }, "every", "0", "1 or more");
  check_rejected([&] { (void)index.every(-2); }, "every", "-2", "1 or more");
  check_rejected([&] { (void)index.every(3); }, "every", "blocks of 3", "has a table of");
  check_rejected([&] { (void)index.every(2).every(4); }, "every", "blocks of 2", "2");
  check_rejected([&] { (void)index.every(2).every(1); }, "every", "1 on an index read in blocks of 2", "2");
  check_rejected([&] { (void)index.select(columns).every(2); }, "every", "selection", "without one");
  check_rejected([&] { (void)index.draft(zeros({2, 2}), zeros({2, 2, 2}, DType::boolean)).every(2); }, "every", "draft", "none");
  check_rejected([&] { (void)packed(2, {{2}, {2}}).every(2); }, "every", "packed", "whole or a tabled");
  check_rejected([&] { (void)Index::whole(2, 2).every(3).every(2); }, "every", "blocks of 3", "3");
  check_rejected([&] { (void)Index::whole(2, 2).select(columns).every(2); }, "every", "selection", "without one");
  check_rejected([] { (void)Index::whole(2, 2).advance(); }, "advance", "whole", "tabled");
  check_rejected([] { (void)packed(2, {{2}}).advance(); }, "advance", "packed", "tabled");
  const Tensor memory = zeros({2, 2});
  const Device device{QUIRE_DEVICE_CUDA, 0};
  const Tensor elsewhere = Tensor::borrow(memory.raw(), DType::i64, {2, 2}, {}, device);
  const Index on_device = Index::make(elsewhere, elsewhere);
  const Caught error = caught([&] { (void)on_device.advance(); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::unsupported);
}

TEST_CASE("a rejected call leaves the index as it was") {
  const Index index = rows(4, {2, 2}, {2}).window(3);
  const Structure before = index.structure();
  CHECK(caught([&] { (void)index.window(0); }).raised);
  CHECK(caught([&] { (void)index.every(9); }).raised);
  CHECK(caught([&] { (void)index.select({}); }).raised);
  CHECK(index.structure() == before);
  CHECK(index.window_size() == 3);
}
