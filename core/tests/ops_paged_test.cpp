// Paged states: rows by hand, and paged calls against unpaged ones, bit for bit (laws E10-E14, F1).
#include "gdn_test_helpers.h"

#include <quire/pages.h>

#include <doctest/doctest.h>

using namespace quire;
using namespace quire::test;

namespace {

PagedSequences pages(std::initializer_list<std::int32_t> indices, std::initializer_list<std::int32_t> indptr, std::initializer_list<std::int32_t> last,
                     std::int64_t page_size = 64) {
  const auto list = [](std::initializer_list<std::int32_t> values) { return i32(values, {static_cast<std::int64_t>(values.size())}); };
  return {list(indices), list(indptr), list(last), page_size};
}
void check_slots(const GdnPrefillSlots& slots, const Integers& read, const Integers& write, const Integers& prefix, const Integers& starts) {
  CHECK(whole_numbers(slots.state_indices) == read);
  CHECK(whole_numbers(slots.output_state_indices) == write);
  CHECK(whole_numbers(slots.prefix_lens) == prefix);
  CHECK(whole_numbers(slots.checkpoint_cu_starts) == starts);
  for (const Tensor* tensor : {&slots.state_indices, &slots.output_state_indices, &slots.prefix_lens, &slots.checkpoint_cu_starts}) {
    CHECK(tensor->dtype() == DType::i32);
  }
}

}  // namespace

TEST_CASE("E11: the seed's example, 2,500 tokens of which 2,048 are cached") {
  check_slots(gdn_prefill_slots(i32({0, 452}, {2}), pages({7, 3, 12}, {0, 3}, {452}, 1024)), {3}, {12}, {2048}, {2});
}

TEST_CASE("E11: rows by hand") {
  // Totals 64, 65, 128 and 100 with 64, 1, 64 and 30 new tokens.
  const PagedSequences given = pages({0, 1, 2, 3, 4, 5, 6}, {0, 1, 3, 5, 7}, {64, 1, 64, 36});
  check_slots(gdn_prefill_slots(i32({0, 64, 65, 129, 159}, {5}), given, 7), {-1, 1, 3, 6}, {0, 2, 4, 6}, {0, 64, 64, 70}, {0, 2, 4, 6});
  // Nothing new: row -1 to write; no pages: no tokens, and last_page_len is not read.
  check_slots(gdn_prefill_slots(i64({0, 0, 0}, {3}), pages({9}, {0, 1, 1}, {64, -5})), {9, -1}, {-1, -1}, {64, 0}, {1, 1});
  const GdnPrefillSlots none = gdn_prefill_slots(i32({0}, {1}), pages({}, {0}, {}));
  CHECK(none.state_indices.shape() == Shape{0});
}

TEST_CASE("E12: rows by hand") {
  const GdnDecodeSlots slots = gdn_decode_slots(pages({5, 2, 8, 6, 4}, {0, 2, 2, 3, 5}, {1, -7, 2, 64}));
  CHECK(whole_numbers(slots.state_indices) == Integers{5, -1, 8, 4});
  CHECK(whole_numbers(slots.output_state_indices) == Integers{2, -1, 8, 4});
  CHECK(slots.state_indices.dtype() == DType::i32);
}

TEST_CASE("paged prefill is prefill on the rows that the table names; pages hold the states at their ends") {
  // Sequence 0: a prefix of 100 in pages 4 and 1, 100 new tokens to 200 in pages 1, 6, 3. Sequence 1: 128 tokens in 0 and 5.
  const GdnInputs inputs = rule_inputs(228, 3);
  const Tensor pool = filled(DType::f32, {8, 4, 3, 5}, 30);
  const PagedSequences given = pages({4, 1, 6, 3, 0, 5}, {0, 4, 6}, {8, 64});
  const Tensor cu_seqlens = i32({0, 100, 228}, {3});
  const GdnStates got = gdn_prefill_paged(inputs, cu_seqlens, pool, given);
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = cu_seqlens;
  call.initial_state = pool;
  call.state_indices = i32({1, -1}, {2});
  call.output_state = pool;
  call.output_state_indices = i32({3, 5}, {2});
  call.output_final_state = true;
  const GdnPrefilled unpaged = gdn_prefill(std::move(call));
  CHECK(same_bits(got.output, unpaged.output));
  CHECK(same_bits(got.state_pool.at(3), unpaged.output_state.at(3)));
  CHECK(same_bits(got.state_pool.at(5), unpaged.output_state.at(5)));
  // Absolute 128 is new token 28, 192 is 92; page 1 is read before it is stored to.
  CHECK(bytes(got.state_pool.at(1)) == bytes(prefill(part(inputs, 0, 28), pool.slice(1, 1)).output_state));
  CHECK(bytes(got.state_pool.at(6)) == bytes(prefill(part(inputs, 0, 92), pool.slice(1, 1)).output_state));
  CHECK(bytes(got.state_pool.at(0)) == bytes(prefill(part(inputs, 100, 64)).output_state));
  for (const std::int64_t untouched : {2, 4, 7}) CHECK(same_bits(got.state_pool.at(untouched), pool.at(untouched)));
  // Slots computed once serve every layer.
  const GdnPrefillSlots slots = gdn_prefill_slots(cu_seqlens, given);
  CHECK(same_bits(gdn_prefill_paged(inputs, cu_seqlens, pool, given, &slots).state_pool, got.state_pool));
  // In place, in a padded pool.
  const Tensor padded = fill(Tensor::empty_padded(DType::f32, {8, 4, 3, 5}, 61), 30);
  CHECK(gdn_prefill_paged(inputs, cu_seqlens, Pool::in_place(padded), given).state_pool.raw() == padded.raw());
  CHECK(same_bits(padded, got.state_pool));
}

TEST_CASE("chunked paged prefill and decode keep every page of the whole, where states are exact") {
  const std::int64_t tokens = 140;
  GdnInputs inputs = exact_inputs(tokens, 5);
  for_elements(inputs.beta, [](std::int64_t, std::byte* e) { write_number(DType::f32, e, 1); });  // bounded digits over many tokens
  inputs.use_qk_l2norm = false;
  const Tensor pool = Tensor::zeros(DType::f32, {4, 4, 3, 5});
  const GdnStates whole = gdn_prefill_paged(inputs, i32({0, 140}, {2}), pool, pages({2, 0, 3}, {0, 3}, {12}));
  for (const std::int64_t cut : {1, 63, 64, 65, 100, 128, 139}) {
    CAPTURE(cut);
    const std::int32_t first_pages = static_cast<std::int32_t>((cut + 63) / 64);
    PagedSequences first = pages({2, 0, 3}, {0, first_pages}, {static_cast<std::int32_t>((cut - 1) % 64 + 1)});
    const GdnStates one = gdn_prefill_paged(part(inputs, 0, cut), i64({0, cut}, {2}), pool, first);
    const GdnStates two = gdn_prefill_paged(part(inputs, cut, tokens - cut), i64({0, tokens - cut}, {2}), one.state_pool, pages({2, 0, 3}, {0, 3}, {12}));
    CHECK(bytes(one.output) + bytes(two.output) == bytes(whole.output));
    CHECK(same_bits(two.state_pool, whole.state_pool));
  }
  // From token 60 on decoded, over a page's end.
  Tensor state = gdn_prefill_paged(part(inputs, 0, 60), i32({0, 60}, {2}), pool, pages({2}, {0, 1}, {60})).state_pool;
  for (std::int64_t t = 60; t < 70; ++t) {
    GdnDecode call;
    call.inputs = as_batch(part(inputs, t, 1), 1);
    call.inputs.use_qk_l2norm = false;
    call.state_pool = state;
    const std::int32_t count = t < 64 ? 1 : 2;
    const GdnStates step = gdn_decode_paged(std::move(call), pages({2, 0, 3}, {0, count}, {static_cast<std::int32_t>(t % 64 + 1)}));
    CHECK(bytes(step.output) == bytes(whole.output.at(t)));
    state = step.state_pool;
  }
  CHECK(same_bits(state.at(2), whole.state_pool.at(2)));
}

TEST_CASE("E14: padded and zero-length sequences leave every other page") {
  const GdnInputs inputs = rule_inputs(2, 3);
  const Tensor pool = filled(DType::f32, {5, 4, 3, 5}, 30);
  const GdnStates prefilled = gdn_prefill_paged(part(inputs, 0, 0), i32({0, 0, 0}, {3}), pool, pages({3, -1}, {0, 1, 2}, {64, 10}));
  CHECK(same_bits(prefilled.state_pool, pool));
  GdnDecode call;
  call.inputs = as_batch(inputs, 2);
  call.state_pool = pool;
  const GdnStates decoded = gdn_decode_paged(std::move(call), pages({3}, {0, 1, 1}, {64, 0}));
  for (const std::int64_t untouched : {0, 1, 2, 4}) CHECK(same_bits(decoded.state_pool.at(untouched), pool.at(untouched)));
  for (const double number : numbers(decoded.output.at(1))) CHECK(number == 0);
}

TEST_CASE("F1: one index names an attention layer's blocks and a recurrent layer's pages") {
  // Lane 0: row 1, positions 60 to 69; lane 1: padding; lane 2: row 0, positions 0 to 2.
  Tensor pos = Tensor::empty(DType::i64, {3, 10});
  for (std::int64_t i = 0; i < 10; ++i) {
    pos.data<std::int64_t>()[i] = 60 + i;
    pos.data<std::int64_t>()[10 + i] = -1;
    pos.data<std::int64_t>()[20 + i] = i < 7 ? -1 : i - 7;
  }
  const Index index = Index::make(pos, Tensor::zeros(DType::i64, {2, 128}), i64({1, 1, 0}, {3}), {{64, i64({5, -1, 2, 4}, {2, 2})}});
  const PageTable table = PageTable::from(index, 64);
  check_slots(gdn_prefill_slots(table.cu_seqlens, table.sequences(), 6), {2, -1, -1}, {4, -1, 5}, {60, 0, 0}, {0, 2, 2});
  const GdnInputs inputs = rule_inputs(13, 3);
  const Tensor pool = filled(DType::f32, {6, 4, 3, 5}, 30);
  const GdnStates got = gdn_prefill_paged(inputs, table.cu_seqlens, pool, table.sequences());
  CHECK(bytes(got.state_pool.at(2)) == bytes(prefill(part(inputs, 0, 4), pool.slice(2, 1)).output_state));
  CHECK(bytes(got.state_pool.at(4)) == bytes(prefill(part(inputs, 0, 10), pool.slice(2, 1)).output_state));
  CHECK(bytes(got.state_pool.at(5)) == bytes(prefill(part(inputs, 10, 3)).output_state));
  for (const std::int64_t untouched : {0, 1, 3}) CHECK(same_bits(got.state_pool.at(untouched), pool.at(untouched)));
}

TEST_CASE("E13: what is rejected") {
  const auto slots = [](const Tensor& lens, const PagedSequences& given, std::optional<std::int64_t> count = {}) {
    return [=] { (void)gdn_prefill_slots(lens, given, count); };
  };
  const auto decode_slots = [](const PagedSequences& given, std::optional<std::int64_t> count = {}) { return [=] { (void)gdn_decode_slots(given, count); }; };
  const Tensor ten = i32({0, 10}, {2});
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-64}, std::int64_t{32}, std::int64_t{65}}) {
    check_rejected(slots(ten, pages({0}, {0, 1}, {10}, bad)), "page_size", std::to_string(bad), "positive multiple of 64");
  }
  check_rejected(slots(ten, pages({0}, {0, 1}, {0})), "last_page_len", "0 for sequence 0", "1 to the page size, 64");
  check_rejected(slots(ten, pages({0}, {0, 1}, {65})), "last_page_len", "65 for sequence 0", "64");
  check_rejected(slots(ten, pages({0}, {0, 1}, {9})), "page_indptr", "9 tokens for the 10 new tokens", "at least");
  check_rejected(slots(ten, pages({}, {0, 0}, {9})), "page_indptr", "0 tokens for the 10 new tokens", "at least");
  check_rejected(slots(ten, pages({0}, {1, 1}, {10})), "page_indptr", "first entry of 1", "0");
  check_rejected(slots(ten, pages({0}, {0, 2}, {10})), "page_indptr", "2 after 0", "at most the 1 page_indices");
  check_rejected(slots(i32({0, 0, 0}, {3}), pages({0}, {0, 1, 0}, {1, 1})), "page_indptr", "0 after 1", "never fall");
  check_rejected(slots(ten, pages({0}, {0, 1}, {10, 10})), "last_page_len", "i32[2]", "[1]");
  check_rejected(slots(ten, pages({0}, {0, 1, 1}, {10})), "page_indptr", "i32[3]", "[2]");
  check_rejected(slots(ten, pages({-1}, {0, 1}, {10})), "page_indices", "page -1 for sequence 0", "0 or more");
  check_rejected(slots(ten, pages({7}, {0, 1}, {10}), 7), "page_indices", "page 7 for sequence 0", "0 to 6");
  check_rejected(slots(ten, pages({0}, {0, 1}, {10}), -1), "num_pages", "-1", "0 or more");
  check_rejected(slots(ten, pages({3, 3}, {0, 2}, {5})), "page_indices", "page 3", "");  // read by its sequence, written twice
  check_rejected(slots(i32({0, 100}, {2}), pages({3, 3}, {0, 2}, {64})), "page_indices", "page 3 to be written twice", "each write");
  check_rejected(slots(i32({0, 10, 20}, {3}), pages({3, 3}, {0, 1, 2}, {10, 10})), "page_indices", "page 3", "");
  check_rejected(slots(i32({0, 10, 20}, {3}), pages({3, 4, 3}, {0, 2, 3}, {10, 20})), "page_indices", "page 3", "no other sequence");
  check_rejected(slots(i32({1, 10}, {2}), pages({0}, {0, 1}, {10})), "cu_seqlens", "1 at entry 0", "first entry of 0");
  check_rejected(slots(i32({0, 10, 9}, {3}), pages({0, 1}, {0, 1, 2}, {10, 9})), "cu_seqlens", "9 at entry 2", "never fall");
  // Two sequences may read one page; untouched pages may hold any id.
  CHECK_FALSE(caught(slots(i32({0, 10, 20}, {3}), pages({-1, 3, 4, -9, 3, 5}, {0, 3, 6}, {10, 10}), 6)).raised);
  check_rejected(decode_slots(pages({0}, {0, 1}, {1})), "last_page_len", "1 with one page", "before the decoded one");
  check_rejected(decode_slots(pages({0, 0}, {0, 1, 2}, {5, 5})), "page_indices", "page 0", "");
  check_rejected(decode_slots(pages({6, 0}, {0, 2}, {1}), 6), "page_indices", "page 6", "0 to 5");
  CHECK_FALSE(caught(decode_slots(pages({-1, 0}, {0, 2}, {2}))).raised);
}
