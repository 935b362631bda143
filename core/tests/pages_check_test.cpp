// PageTable (F1) and check (F3), by hand.
#include <quire/check.h>
#include <quire/pages.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace quire;
using namespace quire::test;

namespace {

// Rows of 12 positions in blocks of 4: row 0 has pages 7, 3, 5, row 1 pages 2, -1, -1, row 2 freed ones.
Index paged(Tensor pos, Tensor row = {}) {
  return Index::make(std::move(pos), Tensor::zeros(DType::i64, {3, 12}), std::move(row), {{4, i64({7, 3, 5, 2, -1, -1, -1, -9, 6}, {3, 3})}});
}

void check_table(const PageTable& table, const Integers& cu_seqlens, const Integers& indices, const Integers& indptr, const Integers& last) {
  CHECK(whole_numbers(table.cu_seqlens) == cu_seqlens);
  CHECK(whole_numbers(table.page_indices) == indices);
  CHECK(whole_numbers(table.page_indptr) == indptr);
  CHECK(whole_numbers(table.last_page_len) == last);
  for (const Tensor* tensor : {&table.cu_seqlens, &table.page_indices, &table.page_indptr, &table.last_page_len}) {
    CHECK(tensor->dtype() == DType::i32);
    CHECK(tensor->rank() == 1);
  }
}

using Found = std::vector<std::string>;

// "kind lane row column", a dash where absent; sorted.
Found kinds(const Index& index, std::optional<std::int64_t> slots = {}) {
  const auto text = [](std::optional<std::int64_t> number) { return number ? std::to_string(*number) : std::string("-"); };
  Found found;
  for (const Finding& finding : check(index, slots)) {
    found.push_back(finding.kind + " " + text(finding.lane) + " " + text(finding.row) + " " + text(finding.column));
    CHECK_FALSE(finding.message.empty());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("F1: pages of the lanes' sequences in lane order") {
  // Lane 0: row 1, positions 0 to 2. Lane 1: row 0, positions 6 to 9 of a prefix of 6.
  const Index index = paged(i64({-1, 0, 1, 2, 6, 7, 8, 9}, {2, 4}), i64({1, 0}, {2}));
  for (const Index& read : {index, index.every(4), index.window(3)}) {
    const PageTable table = PageTable::from(read, 4);
    check_table(table, {0, 3, 7}, {2, 7, 3, 5}, {0, 1, 4}, {3, 2});
    CHECK(table.page_size == 4);
    CHECK(table.sequences().page_size == 4);
    CHECK(table.sequences().page_indices.raw() == table.page_indices.raw());
  }
}

TEST_CASE("F1: full pages, padding inside a lane, freed ids as they are") {
  check_table(PageTable::from(paged(i64({0, -1, 1, 2, -3, 3}, {1, 6}), i64({0}, {1})), 4), {0, 4}, {7}, {0, 1}, {4});
  check_table(PageTable::from(paged(i64({8}, {1, 1}), i64({2}, {1})), 4), {0, 1}, {-1, -9, 6}, {0, 3}, {1});
  check_table(PageTable::from(paged(i64({11}, {1, 1}), i64({0}, {1})), 4), {0, 1}, {7, 3, 5}, {0, 3}, {4});
}

TEST_CASE("F1: a lane of padding has no pages, or one scratch page") {
  const Index index = paged(i64({-1, -1, 3, 4, 0, 1}, {3, 2}), i64({0, 1, -1}, {3}));
  check_table(PageTable::from(index, 4), {0, 0, 2, 2}, {2, -1}, {0, 0, 2, 2}, {4, 1, 4});
  const Integers scratch = {40, 41};
  check_table(PageTable::from(index, 4, scratch), {0, 0, 2, 2}, {40, 2, -1, 41}, {0, 1, 3, 4}, {4, 1, 4});
  const Integers one = {40}, three = {1, 2, 3};
  check_rejected([&] { PageTable::from(index, 4, one); }, "scratch", "1 page ids", "one for each lane of padding");
  check_rejected([&] { PageTable::from(index, 4, three); }, "scratch", "3 page ids", "2, one for each lane of padding");
  // Rows of lanes without tokens may repeat and may lie outside the table.
  check_table(PageTable::from(paged(i64({0, -1, -1}, {3, 1}), i64({0, 0, 9}, {3})), 4), {0, 1, 1, 1}, {7}, {0, 1, 1, 1}, {1, 4, 4});
}

TEST_CASE("F1: what is rejected") {
  const Index index = paged(i64({0, 1}, {1, 2}), i64({0}, {1}));
  const auto from = [](const Index& given, std::int64_t page_size = 4) { return [=] { PageTable::from(given, page_size); }; };
  check_rejected(from(index, 8), "page_size", "8", "has a table of");
  check_rejected(from(index, 1), "page_size", "1", "has a table of");
  check_rejected(from(index, 0), "page_size", "0", "has a table of");
  check_rejected(from(Index::whole(1, 4)), "index", "whole", "tabled");
  check_rejected(from(packed(4, {{4}})), "index", "packed", "tabled");
  check_rejected(from(index.select(i64({0, 0}, {1, 2, 1}))), "index", "selection", "without one");
  check_rejected(from(index.draft(i64({1, 2}, {1, 2}), Tensor::zeros(DType::boolean, {1, 2, 2}))), "index", "draft", "none");
  check_rejected(from(paged(i64({0, 0}, {2, 1}), i64({1, 1}, {2}))), "index", "row 1 in lanes 0 and 1", "one lane with tokens");
  check_rejected(from(paged(i64({0, 2}, {1, 2}), i64({0}, {1}))), "index", "position 2 of lane 0", "1, the lane's next");
  check_rejected(from(paged(i64({1, 0}, {1, 2}), i64({0}, {1}))), "index", "position 0 of lane 0", "2, the lane's next");
  check_rejected(from(paged(i64({5, 5}, {1, 2}), i64({0}, {1}))), "index", "position 5 of lane 0", "6, the lane's next");
  check_rejected(from(paged(i64({12}, {1, 1}), i64({0}, {1}))), "index", "position 12 of lane 0", "3 blocks of 4");
  check_rejected(from(paged(i64({0}, {1, 1}), i64({3}, {1}))), "index", "row 3 of lane 0", "rows 0 to 2");
  check_rejected(from(paged(i64({0}, {1, 1}), i64({-2}, {1}))), "index", "row -2 of lane 0", "rows 0 to 2");
  const Index wide = Index::make(i64({0}, {1, 1}), i64({0}, {1, 1}), {}, {{2, i64({std::int64_t{1} << 31}, {1, 1})}});
  check_rejected(from(wide, 2), "index", "2147483648", "32 bits");
}

TEST_CASE("F3: nothing to find") {
  CHECK(kinds(rows(4, {3, 1}, {2})) == Found{});
  CHECK(kinds(rows(4, {4, 4}, {2}).every(2), 4) == Found{});
  CHECK(kinds(Index::whole(2, 3)) == Found{});
  CHECK(kinds(packed(3, {{1, 2}})) == Found{});
  // A prefix shared at the same columns.
  CHECK(kinds(Index::make(i64({2, 2}, {2, 1}), i64({0, 1, 2, 0, 1, 3}, {2, 3}))) == Found{});
  // A column freed below every window, and a lane of padding.
  CHECK(kinds(Index::make(i64({2, -1}, {2, 1}), i64({-1, 1, 2, -1, -1, -1}, {2, 3}), i64({0, -1}, {2})).window(2)) == Found{});
}

TEST_CASE("F3: slot_twice_in_row and shared_at_two_columns") {
  CHECK(kinds(Index::make(i64({-1}, {1, 1}), i64({4, 5, 4, 4}, {1, 4}))) == Found{"slot_twice_in_row - 0 2", "slot_twice_in_row - 0 3"});
  // Slot 5 stands at column 1 of row 0 and at column 0 of row 1.
  CHECK(kinds(Index::make(i64({-1, -1}, {2, 1}), i64({4, 5, 5, 6}, {2, 2}))) == Found{"shared_at_two_columns - 1 0"});
  CHECK(kinds(Index::make(i64({-1, -1, -1}, {3, 1}), i64({4, 5, 4, 6, 6, 4}, {3, 2}))) ==
        Found{"shared_at_two_columns - 2 0", "shared_at_two_columns - 2 1"});
  // What addresses nothing is no slot.
  CHECK(kinds(Index::make(i64({-1, -1}, {2, 1}), i64({-1, -1, -1, -1}, {2, 2}))) == Found{});
  CHECK(kinds(Index::make(i64({-1}, {1, 1}), i64({9, 9}, {1, 2})), 9) == Found{"slot_out_of_pool - 0 0", "slot_out_of_pool - 0 1"});
}

TEST_CASE("F3: two_writers and write_to_shared") {
  // Two lanes of one row at one position.
  CHECK(kinds(Index::make(i64({1, 1}, {2, 1}), i64({0, 1}, {1, 2}), i64({0, 0}, {2}))) == Found{"two_writers 1 0 1"});
  // Twice in one lane: once per lane, row and column.
  CHECK(kinds(Index::make(i64({1, 1, 1}, {1, 3}), i64({0, 1}, {1, 2}))) == Found{"two_writers 0 0 1"});
  // Row 1 names slot 2 too; only lane 0 writes there.
  CHECK(kinds(Index::make(i64({1, -1}, {2, 1}), i64({0, 2, 1, 2}, {2, 2}))) == Found{"write_to_shared 0 0 1"});
  CHECK(kinds(Index::make(i64({1, 1}, {2, 1}), i64({0, 2, 1, 2}, {2, 2}))) ==
        Found{"two_writers 1 1 1", "write_to_shared 0 0 1", "write_to_shared 1 1 1"});
  // In blocks only the token that closes one writes; the table checked is the block table.
  const Index blocks = Index::make(i64({2, 3, 3, -1}, {2, 2}), i64({0, 0, 0, 0, 0, 0, 0, 0}, {2, 4}), {}, {{2, i64({0, 5, 1, 5}, {2, 2})}}).every(2);
  CHECK(kinds(blocks) == Found{"two_writers 1 1 1", "write_to_shared 0 0 1", "write_to_shared 1 1 1"});
}

TEST_CASE("F3: slot_out_of_pool and row_out_of_table") {
  CHECK(kinds(Index::make(i64({-1}, {1, 1}), i64({-2, -1, 7}, {1, 3}))) == Found{"slot_out_of_pool - 0 0"});
  CHECK(kinds(Index::make(i64({-1}, {1, 1}), i64({-2, -1, 7}, {1, 3})), 7) == Found{"slot_out_of_pool - 0 0", "slot_out_of_pool - 0 2"});
  CHECK(kinds(Index::make(i64({-1}, {1, 1}), i64({-2, -1, 7}, {1, 3})), 8) == Found{"slot_out_of_pool - 0 0"});
  CHECK(kinds(Index::make(i64({-1, -1, -1, -1}, {4, 1}), i64({0}, {1, 1}), i64({-1, -2, 0, 1}, {4}))) ==
        Found{"row_out_of_table 1 -2 -", "row_out_of_table 3 1 -"});
  // Such a lane's tokens are real (A2): what they see is a hole.
  CHECK(kinds(Index::make(i64({1}, {1, 1}), i64({0, 1}, {1, 2}), i64({5}, {1}))) == Found{"hole 0 5 0", "hole 0 5 1", "row_out_of_table 0 5 -"});
}

TEST_CASE("F3: hole") {
  const Tensor table = i64({-1, 9, -1, 3}, {1, 4});
  CHECK(kinds(Index::make(i64({0, 3}, {1, 2}), table)) == Found{"hole 0 0 0", "hole 0 0 2"});
  CHECK(kinds(Index::make(i64({1}, {1, 1}), table)) == Found{"hole 0 0 0"});
  CHECK(kinds(Index::make(i64({3}, {1, 1}), table).window(2)) == Found{"hole 0 0 2"});
  CHECK(kinds(Index::make(i64({1}, {1, 1}), table), 9) == Found{"hole 0 0 0", "hole 0 0 1", "slot_out_of_pool - 0 1"});
  // Under a selection, what is chosen and seen (B5).
  CHECK(kinds(Index::make(i64({1, 3}, {1, 2}), table).select(i64({2, 1, 2, 7}, {1, 2, 2}))) == Found{"hole 0 0 2"});
  CHECK(kinds(Index::make(i64({1, 3}, {1, 2}), table).select(i64({2, -1, 1, 3}, {1, 2, 2}))) == Found{});
  const Index blocks = Index::make(i64({3}, {1, 1}), table, {}, {{2, i64({-1, 4}, {1, 2})}});
  CHECK(kinds(blocks.every(2)) == Found{"hole 0 0 0"});
  // Under a draft only the columns before the lane's least position are read (B4).
  CHECK(kinds(Index::make(i64({2, 3}, {1, 2}), table).draft(i64({5, 6}, {1, 2}), bools({1, 0, 1, 1}, {1, 2, 2}))) == Found{"hole 0 0 0"});
}

TEST_CASE("F3: past_context and draft_past_table") {
  CHECK(kinds(Index::make(i64({1, 2, 3}, {1, 3}), i64({0, 1}, {1, 2}))) == Found{"past_context 0 0 -"});
  const Index blocks = Index::make(i64({4}, {1, 1}), i64({0, 1, 2, 3, 4, 5}, {1, 6}), {}, {{2, i64({0, 1}, {1, 2})}});
  CHECK(kinds(blocks) == Found{});
  CHECK(kinds(blocks.every(2)) == Found{"past_context 0 0 -"});
  CHECK(kinds(Index::make(i64({2, 2}, {1, 2}), i64({0, 1}, {1, 2})).draft(i64({5, 6}, {1, 2}), bools({1, 0, 0, 1}, {1, 2, 2}))) ==
        Found{"draft_past_table 0 0 2", "draft_past_table 0 0 3"});
}

TEST_CASE("F3: a draft's slots") {
  const auto draft = [](const Tensor& slots) {
    return Index::make(i64({1, 2}, {1, 2}), i64({0, 1, 2, 3, 4, 5}, {2, 3}), i64({0}, {1})).draft(slots, bools({1, 0, 1, 1}, {1, 2, 2}));
  };
  CHECK(kinds(draft(i64({8, 9}, {1, 2}))) == Found{});
  CHECK(kinds(draft(i64({-1, 9}, {1, 2}))) == Found{});
  CHECK(kinds(draft(i64({8, 8}, {1, 2}))) == Found{"two_writers 0 0 4"});
  CHECK(kinds(draft(i64({1, 9}, {1, 2}))) == Found{"draft_slot_in_table 0 0 3"});
  CHECK(kinds(draft(i64({8, 5}, {1, 2}))) == Found{"draft_slot_in_table 0 0 4", "write_to_shared 0 0 4"});
  CHECK(kinds(draft(i64({-3, 9}, {1, 2}))) == Found{"slot_out_of_pool 0 0 3"});
  CHECK(kinds(draft(i64({8, 9}, {1, 2})), 9) == Found{"slot_out_of_pool 0 0 4"});
  // A padded token has no slot.
  CHECK(kinds(Index::make(i64({-1, 1}, {1, 2}), i64({0, 1}, {1, 2})).draft(i64({0, 9}, {1, 2}), bools({1, 1, 0, 1}, {1, 2, 2}))) == Found{});
}

TEST_CASE("F3: sees_later, once per token") {
  const auto draft = [](const Tensor& sees) {
    return Index::make(i64({1, 2, 2}, {1, 3}), i64({0, 1, 2}, {1, 3})).draft(i64({7, 8, 9}, {1, 3}), sees);
  };
  CHECK(kinds(draft(bools({1, 0, 0, 1, 1, 0, 1, 0, 1}, {1, 3, 3}))) == Found{});
  CHECK(kinds(draft(bools({1, 1, 1, 1, 1, 0, 1, 0, 1}, {1, 3, 3}))) == Found{"sees_later 0 0 3"});
  CHECK(kinds(draft(bools({1, 0, 0, 1, 1, 1, 1, 0, 1}, {1, 3, 3}))) == Found{"sees_later 0 0 4"});  // a sibling of its own position
  CHECK(kinds(draft(bools({0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 3, 3}))) == Found{});
}

TEST_CASE("F3: check changes nothing, and says what it can't do") {
  const Index index = Index::make(i64({1, 1}, {1, 2}), i64({0, -5}, {1, 2}));
  const std::string before = bytes(index.table()) + bytes(index.pos());
  (void)check(index, 1);
  CHECK(bytes(index.table()) + bytes(index.pos()) == before);
  check_rejected([&] { (void)check(index, -1); }, "slots", "-1", "0 or more");
  const Tensor memory = Tensor::zeros(DType::i64, {1, 1});
  const Tensor elsewhere = Tensor::borrow(memory.raw(), DType::i64, {1, 1}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  const Caught error = caught([&] { (void)check(Index::make(elsewhere, elsewhere)); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.argument == "index");
}
