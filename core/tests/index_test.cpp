// The index's builders by hand: values, sharing, structure, place (laws A1-A15).
#include <quire/index.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace quire;
using namespace quire::test;

namespace {

// Two lanes of three tokens over rows of four columns, with blocks of 2 and of 3 positions.
Index two_lanes() {
  return Index::make(i64({2, 3, -1, -1, 0, 1}, {2, 3}), i64({5, 6, 7, 8, 0, 1, -1, -1}, {2, 4}), {},
                     {{2, i64({0, 1, 2, -1}, {2, 2})}, {3, i64({4, 5, 6, 7}, {2, 2})}});
}

Structure structure_of(std::initializer_list<StructureEntry> entries) { return entries; }

}  // namespace

TEST_CASE("A1: make keeps what it is given") {
  const Tensor pos = i64({2, 3, -1, -1, 0, 1}, {2, 3});
  const Tensor table = i64({5, 6, 7, 8}, {1, 4});
  const Tensor row = i64({0, 0}, {2});
  const Index index = Index::make(pos, table, row);
  CHECK(index.kind() == IndexKind::tabled);
  CHECK(index.is_tabled());
  CHECK(index.batch() == 2);
  CHECK(index.seq() == 3);
  CHECK(index.context() == 4);
  CHECK(index.positions_context() == 4);
  CHECK(index.reads() == 1);
  CHECK_FALSE(index.window_size().has_value());
  CHECK_FALSE(index.columns().defined());
  CHECK_FALSE(index.draft_tokens().has_value());
  CHECK(index.block_tables().empty());
  CHECK(index.pos().raw() == pos.raw());
  CHECK(index.table().raw() == table.raw());
  CHECK(index.row().raw() == row.raw());
  CHECK_FALSE(two_lanes().row().defined());
  CHECK(std::string(name(IndexKind::whole)) == "whole");
  CHECK(std::string(name(IndexKind::packed)) == "packed");
  CHECK(std::string(name(IndexKind::tabled)) == "tabled");
}

TEST_CASE("A3: block tables are found by their block size") {
  const Index index = two_lanes();
  REQUIRE(index.block_tables().size() == 2);
  REQUIRE(index.block_table(3) != nullptr);
  CHECK(index.block_table(3)->block_size == 3);
  CHECK(whole_numbers(index.block_table(3)->blocks) == Integers{4, 5, 6, 7});
  CHECK(index.block_table(4) == nullptr);
  CHECK(index.block_table(1) == nullptr);
}

TEST_CASE("A4: rows") {
  const Index index = rows(4, {3, 1, 0}, {2, 3, 8});
  CHECK(index.is_tabled());
  CHECK(index.pos().shape() == Shape{3, 3});
  CHECK(whole_numbers(index.pos()) == Integers{0, 1, 2, -1, -1, 0, -1, -1, -1});
  CHECK(index.table().shape() == Shape{3, 4});
  CHECK(whole_numbers(index.table()) == Integers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK_FALSE(index.row().defined());
  // ceil(4/2) = 2, ceil(4/3) = 2, ceil(4/8) = 1 block slots per sequence.
  CHECK(index.block_table(2)->blocks.shape() == Shape{3, 2});
  CHECK(whole_numbers(index.block_table(2)->blocks) == Integers{0, 1, 2, 3, 4, 5});
  CHECK(whole_numbers(index.block_table(3)->blocks) == Integers{0, 1, 2, 3, 4, 5});
  CHECK(index.block_table(8)->blocks.shape() == Shape{3, 1});
  CHECK(whole_numbers(index.block_table(8)->blocks) == Integers{0, 1, 2});
  CHECK(rows(2, {2}).seq() == 2);
}

TEST_CASE("A5: whole") {
  const Index full = Index::whole(2, 3);
  CHECK(full.kind() == IndexKind::whole);
  CHECK_FALSE(full.is_tabled());
  CHECK(whole_numbers(full.pos()) == Integers{0, 1, 2, 0, 1, 2});
  CHECK(full.context() == 3);
  CHECK(full.positions_context() == 3);
  CHECK_FALSE(full.table().defined());
  const Index padded = Index::whole(3, 3, Integers{2, 3, 0});
  CHECK(whole_numbers(padded.pos()) == Integers{-1, 0, 1, 0, 1, 2, -1, -1, -1});
  CHECK(Index::whole(1, 5).every(2).context() == 3);
  CHECK(Index::whole(1, 4).every(2).context() == 2);
  CHECK(Index::whole(1, 3).every(100).context() == 1);
}

TEST_CASE("A6: packed") {
  const Index index = packed(6, {{2, 1, 2}, {6}, {}, {0, 3, 0}});
  CHECK(index.kind() == IndexKind::packed);
  CHECK(whole_numbers(index.pos()) == Integers{-1, 0, 1, 0, 0, 1, 0, 1, 2, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2});
  CHECK(index.context() == 6);
  CHECK(whole_numbers(packed(4, {{3}}).pos()) == whole_numbers(Index::whole(1, 4, Integers{3}).pos()));
}

TEST_CASE("A7: a window replaces an earlier one") {
  const Index index = two_lanes().window(3);
  CHECK(index.window_size() == 3);
  CHECK(index.window(1).window_size() == 1);
  CHECK(index.window(9223372036854775807).window_size() == 9223372036854775807);
}

TEST_CASE("A8: a selection replaces an earlier one and keeps the window") {
  const Tensor columns = i64({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, {2, 3, 2});
  const Index index = two_lanes().window(2).select(columns);
  CHECK(index.columns().raw() == columns.raw());
  CHECK(index.window_size() == 2);
  const Tensor other = i64({0, 0, 0, 0, 0, 0}, {2, 3, 1});
  CHECK(index.select(other).columns().raw() == other.raw());
  CHECK(Index::whole(1, 2).select(i64({0, 1}, {1, 2, 1})).columns().defined());
  CHECK(packed(2, {{1, 1}}).select(i64({0, 1}, {1, 2, 1})).columns().defined());
  // Choices outside the columns are legal (B5), and so is a selection of blocks.
  CHECK(two_lanes().every(2).select(i64({-7, 99, 0, 0, 0, 0}, {2, 3, 1})).reads() == 2);
}

TEST_CASE("A9: a draft replaces an earlier one and keeps the window") {
  const Tensor slots = i64({10, 11, 12, 13, 14, 15}, {2, 3});
  const Tensor sees = Tensor::zeros(DType::boolean, {2, 3, 3});
  const Index index = two_lanes().window(2).draft(slots, sees);
  REQUIRE(index.draft_tokens().has_value());
  CHECK(index.draft_tokens()->slots.raw() == slots.raw());
  CHECK(index.draft_tokens()->sees.raw() == sees.raw());
  CHECK(index.window_size() == 2);
  CHECK(index.context() == 4);  // the table's columns alone
  const Tensor others = i64({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(index.draft(others, sees).draft_tokens()->slots.raw() == others.raw());
}

TEST_CASE("A10: every, identities first") {
  const Index index = two_lanes();
  CHECK(index.every(2).reads() == 2);
  CHECK(index.every(2).context() == 2);
  CHECK(index.every(2).positions_context() == 4);
  CHECK(index.every(1).structure() == index.structure());
  CHECK(index.every(1).pos().raw() == index.pos().raw());
  CHECK(index.every(2).every(2).structure() == index.every(2).structure());
  CHECK(index.window(3).every(2).window_size() == 3);
  // An identity is one whatever the index carries.
  const Tensor columns = i64({0, 0, 0, 0, 0, 0}, {2, 3, 1});
  CHECK(index.select(columns).every(1).columns().raw() == columns.raw());
  CHECK(index.every(3).select(columns).every(3).columns().raw() == columns.raw());
  CHECK(index.draft(i64({0, 1, 2, 3, 4, 5}, {2, 3}), Tensor::zeros(DType::boolean, {2, 3, 3})).every(1).draft_tokens().has_value());
  CHECK(packed(2, {{1, 1}}).every(1).kind() == IndexKind::packed);
  CHECK(Index::whole(1, 3).every(1).reads() == 1);
  CHECK(Index::whole(1, 3).every(7).reads() == 7);
  CHECK(Index::whole(1, 3).every(7).every(7).reads() == 7);
}

TEST_CASE("A11: advance") {
  const Index index = Index::make(i64({2, 7, 3, -1, -1, -1, -5, 0, -1}, {3, 3}), i64({5, 6, 7, 8}, {1, 4}), i64({0, 0, 0}, {3}),
                                  {{2, i64({0, 1}, {1, 2})}});
  const Index next = index.window(2).every(2).advance();
  CHECK(next.seq() == 1);
  CHECK(next.pos().shape() == Shape{3, 1});
  CHECK(whole_numbers(next.pos()) == Integers{8, 0, 1});
  CHECK(next.window_size() == 2);
  CHECK(next.reads() == 2);
  CHECK(next.table().raw() == index.table().raw());
  CHECK(next.row().raw() == index.row().raw());
  CHECK(next.block_tables().size() == 1);
  CHECK(whole_numbers(next.advance().pos()) == Integers{9, 1, 2});
  CHECK_FALSE(index.select(i64({0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 3, 1})).advance().columns().defined());
  CHECK_FALSE(index.draft(i64({0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 3}), Tensor::zeros(DType::boolean, {3, 3, 3})).advance().draft_tokens().has_value());
  // A lane whose row is -1 is padding throughout (A2); one whose row is outside the table is not.
  const Index lanes = Index::make(i64({4, 4, 4}, {3, 1}), i64({0}, {1, 1}), i64({-1, 9, -2}, {3}));
  CHECK(whole_numbers(lanes.advance().pos()) == Integers{0, 5, 5});
}

TEST_CASE("A12: positions") {
  const Index index = Index::make(i64({2, 3, 4, -1, 100, -9}, {2, 3}), i64({5, 6, 7, 8}, {1, 4}), i64({0, 0}, {2}), {{2, i64({0}, {1, 1})}});
  CHECK(whole_numbers(positions(index)) == Integers{2, 3, 3, 0, 3, 0});
  CHECK(whole_numbers(positions(index.every(2))) == Integers{2, 3, 3, 0, 3, 0});
  CHECK(positions(index).dtype() == DType::i64);
  CHECK(whole_numbers(positions(Index::whole(2, 3, Integers{1, 3}))) == Integers{0, 0, 0, 0, 1, 2});
  CHECK(whole_numbers(positions(Index::whole(1, 3).every(2))) == Integers{0, 1, 2});
  CHECK(whole_numbers(positions(packed(4, {{2, 1}}))) == Integers{0, 0, 1, 0});
  const Index no_row = Index::make(i64({3, 2}, {1, 2}), i64({0, 1, 2, 3}, {1, 4}), i64({-1}, {1}));
  CHECK(whole_numbers(positions(no_row)) == Integers{0, 0});
}

TEST_CASE("A13: builders leave the index as it is and share its tensors") {
  const Index index = two_lanes();
  const Structure before = index.structure();
  const std::string pos_before = bytes(index.pos());
  const std::string table_before = bytes(index.table());
  const Tensor columns = i64({0, 0, 0, 0, 0, 0}, {2, 3, 1});
  const Tensor slots = i64({10, 11, 12, 13, 14, 15}, {2, 3});
  const Index derived[] = {index.window(2), index.every(2), index.select(columns), index.draft(slots, Tensor::zeros(DType::boolean, {2, 3, 3}))};
  for (const Index& other : derived) {
    CHECK(other.pos().raw() == index.pos().raw());
    CHECK(other.table().raw() == index.table().raw());
    CHECK(other.block_table(2)->blocks.raw() == index.block_table(2)->blocks.raw());
    CHECK(other.structure() != before);
  }
  const Index next = index.advance();
  CHECK(next.table().raw() == index.table().raw());
  CHECK(next.pos().raw() != index.pos().raw());
  CHECK(index.structure() == before);
  CHECK(bytes(index.pos()) == pos_before);
  CHECK(bytes(index.table()) == table_before);
  CHECK_FALSE(index.window_size().has_value());
  CHECK(index.reads() == 1);
  CHECK_FALSE(index.columns().defined());
  CHECK_FALSE(index.draft_tokens().has_value());
  const Index copy = index;
  CHECK(copy.pos().raw() == index.pos().raw());
  CHECK(copy.structure() == before);
}

TEST_CASE("A14: the order of a structure's reports") {
  CHECK(two_lanes().structure() == structure_of({{"tokens", "tabled"},
                                                 {"tokens.row", "absent"},
                                                 {"tokens.pos", "i64[2, 3]"},
                                                 {"tokens.table", "i64[2, 4]"},
                                                 {"tokens.blocks", "2"},
                                                 {"tokens.blocks.0", "2"},
                                                 {"tokens.blocks.0", "i64[2, 2]"},
                                                 {"tokens.blocks.1", "3"},
                                                 {"tokens.blocks.1", "i64[2, 2]"},
                                                 {"every", "1"},
                                                 {"window", "absent"},
                                                 {"columns", "absent"},
                                                 {"draft", "absent"}}));
  const Index drafted = Index::make(i64({1}, {1, 1}), i64({0, 1}, {1, 2}), i64({0}, {1})).window(4).draft(i64({7}, {1, 1}), bools({1}, {1, 1, 1}));
  CHECK(drafted.structure() == structure_of({{"tokens", "tabled"},
                                             {"tokens.row", "present"},
                                             {"tokens.row", "i64[1]"},
                                             {"tokens.pos", "i64[1, 1]"},
                                             {"tokens.table", "i64[1, 2]"},
                                             {"tokens.blocks", "0"},
                                             {"every", "1"},
                                             {"window", "4"},
                                             {"columns", "absent"},
                                             {"draft", "present"},
                                             {"draft.slots", "i64[1, 1]"},
                                             {"draft.sees", "bool[1, 1, 1]"}}));
  CHECK(Index::whole(1, 2).every(2).select(i64({0, 1}, {1, 2, 1})).structure() == structure_of({{"tokens", "whole"},
                                                                                               {"tokens.pos", "i64[1, 2]"},
                                                                                               {"every", "2"},
                                                                                               {"window", "absent"},
                                                                                               {"columns", "present"},
                                                                                               {"columns", "i64[1, 2, 1]"},
                                                                                               {"draft", "absent"}}));
}

TEST_CASE("A14: values do not matter, every feature does") {
  const Tensor zeros = Tensor::zeros(DType::i64, {2, 3, 1});
  const Tensor sees = Tensor::zeros(DType::boolean, {2, 3, 3});
  const Tensor slots = Tensor::zeros(DType::i64, {2, 3});
  const Tensor pos = Tensor::zeros(DType::i64, {2, 3});
  const auto table = [](std::int64_t rows_of, std::int64_t context) { return Tensor::zeros(DType::i64, {rows_of, context}); };
  const Tensor row = Tensor::zeros(DType::i64, {2});
  const auto blocks = [&](std::int64_t m, std::int64_t width) { return BlockTable{m, table(2, width)}; };
  const Index base = Index::make(pos, table(2, 4));
  const Index others[] = {
      Index::make(Tensor::zeros(DType::i64, {2, 2}), table(2, 4)),
      Index::make(pos, table(2, 5)),
      Index::make(pos, table(2, 4), row),
      Index::make(pos, table(3, 4), row),
      Index::make(pos, table(2, 4), {}, {blocks(2, 2)}),
      Index::make(pos, table(2, 4), {}, {blocks(3, 2)}),
      Index::make(pos, table(2, 4), {}, {blocks(2, 3)}),
      Index::make(pos, table(2, 4), {}, {blocks(2, 2), blocks(3, 2)}),
      Index::make(pos, table(2, 4), {}, {blocks(3, 2), blocks(2, 2)}),
      Index::make(pos, table(2, 4), {}, {blocks(2, 2)}).every(2),
      base.window(1),
      base.window(2),
      base.select(zeros),
      base.select(Tensor::zeros(DType::i64, {2, 3, 2})),
      base.draft(slots, sees),
      base.draft(slots, sees).window(2),
      base.advance(),
      Index::whole(2, 3),
      packed(3, {{3}, {3}}),
      Index::whole(2, 3).every(2),
  };
  for (std::size_t i = 0; i < std::size(others); ++i) {
    CAPTURE(i);
    CHECK(others[i].structure() != base.structure());
    for (std::size_t j = 0; j < i; ++j) {
      CAPTURE(j);
      CHECK(others[i].structure() != others[j].structure());
    }
  }
  CHECK(Index::make(fill(Tensor::empty(DType::i64, {2, 3}), 1, 0, 9), fill(Tensor::empty(DType::i64, {2, 4}), 2, 0, 9)).structure() == base.structure());
  CHECK(rows(4, {3, 1}).structure() == base.structure());
  CHECK(packed(3, {{1, 1}, {2}}).structure() == packed(3, {{3}, {3}}).structure());
  CHECK(Index::whole(2, 3, Integers{1, 2}).structure() == Index::whole(2, 3).structure());
  CHECK(base.every(1).structure() == base.structure());
  // Strides are no part of it.
  const Tensor padded = fill(Tensor::empty_padded(DType::i64, {2, 3}, 5), 3, 0, 1);
  CHECK(Index::make(padded, table(2, 4)).structure() == base.structure());
}

TEST_CASE("A15: place") {
  const Index index = two_lanes().window(2);
  const std::vector<Device> host = {{QUIRE_DEVICE_CPU, 0}};
  CHECK(index.place(host).structure() == index.structure());
  CHECK(index.place(host).pos().raw() == index.pos().raw());
  check_rejected([&] { (void)index.place(std::vector<Device>{}); }, "devices", "none", "one device");
  check_rejected([&] { (void)index.place({Device{}, Device{}}); }, "devices", "the host twice", "once");
  const std::vector<Device> elsewhere = {{QUIRE_DEVICE_CPU, 0}, {QUIRE_DEVICE_CUDA, 77}};
  const Caught error = caught([&] { (void)index.place(elsewhere); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.argument == "devices");
  CHECK(contains(error.message, "77"));
  CHECK(contains(error.message, "allowed"));
}
