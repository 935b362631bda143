// Bad numbers on a device (A2, E4, E6, E9, E13, F2): nobody checks them before the call. The sequence that has one reads zero and stores
// nothing, the others are as without it, and no other memory is touched.
#include "core_test_helpers.h"

#include <quire/registry.h>
#include <quire/stream.h>

#include <limits>

QUIRE_BACKEND_EXPORT const quire_backend_table* quire_backend_query(const quire_host*, std::uint32_t, std::uint32_t, const char**);

using namespace quire;
using namespace quire::test;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max(), smallest = std::numeric_limits<std::int64_t>::min();

const Backend& simt() {
  static const Backend backend(quire_backend_query(nullptr, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION, nullptr), "(test)");
  return backend;
}
On on_simt() {
  On on;
  on.backend = &simt();
  return on;
}
constexpr Device device{QUIRE_DEVICE_EXTENSION, 0};
Tensor there(const Tensor& tensor) { return copy_to(tensor, simt(), device); }
Tensor here(const Tensor& tensor) { return copy_to(tensor, simt(), Device{}); }

/// A pool between two stretches that must keep their bits.
struct Guarded {
  explicit Guarded(const Tensor& rows) : before(Tensor::empty(rows.dtype(), padded(rows.shape()))) {
    fill(before, 77);
    std::memcpy(before.at(margin).raw(), rows.raw(), bytes(rows).size());
    memory = there(before);
    pool = memory.slice(margin, rows.size(0));
  }
  static Shape padded(Shape shape) {
    shape[0] += 2 * margin;
    return shape;
  }
  bool is_guard_whole() const {
    const Tensor after = here(memory);
    const std::int64_t end = after.size(0) - margin;
    return same_bits(after.slice(0, margin), before.slice(0, margin)) && same_bits(after.slice(end, margin), before.slice(end, margin));
  }
  bool is_row_kept(std::int64_t row) const { return same_bits(here(memory).at(margin + row), before.at(margin + row)); }

  static constexpr std::int64_t margin = 2;
  Tensor before, memory, pool;
};

GdnInputs inputs_of(std::int64_t tokens, const Tensor& q, const Tensor& k, const Tensor& v) {
  CHECK(q.size(0) == tokens);
  GdnInputs inputs;
  inputs.q = q;
  inputs.k = k;
  inputs.v = v;
  return inputs;
}

constexpr std::int64_t keys = 6, values = 5;

struct PrefillCase {
  explicit PrefillCase(std::int64_t count) : tokens(count) {
    q = fill(Tensor::empty(DType::f32, {tokens, 1, keys}), 1);
    k = fill(Tensor::empty(DType::f32, {tokens, 1, keys}), 2, -0.4, 0.4);
    v = fill(Tensor::empty(DType::f32, {tokens, 1, values}), 3);
    states = fill(Tensor::empty(DType::f32, {4, 1, values, keys}), 4);
  }
  GdnPrefill on_device(const Tensor& cu_seqlens) const {
    GdnPrefill args;
    args.inputs = inputs_of(tokens, there(q), there(k), there(v));
    args.cu_seqlens = there(cu_seqlens);
    args.output_final_state = true;
    return args;
  }
  std::int64_t tokens;
  Tensor q, k, v, states;
};

}  // namespace

TEST_CASE("prefill: sequence starts that fall, or lie outside the tokens (E4)") {
  const PrefillCase one(8);
  // The first sequence is right in each of these.
  for (const auto& starts : {Integers{0, 3, 2, 99}, {0, 3, -1, 8}, {0, 3, largest, smallest}, {0, 3, smallest, largest}}) {
    CAPTURE(starts);
    const Guarded pool(one.states);
    GdnPrefill args = one.on_device(i64(starts, {4}));
    args.initial_state = pool.pool;
    args.state_indices = there(i64({2, 1, 0}, {3}));
    args.output_state = Pool::in_place(pool.pool);
    const GdnPrefilled result = gdn_prefill(args, on_simt());
    CHECK(pool.is_guard_whole());
    CHECK(pool.is_row_kept(1));
    CHECK(pool.is_row_kept(3));
    CHECK_FALSE(pool.is_row_kept(2));
    // The right sequence alone, on the host.
    GdnPrefill alone;
    alone.inputs = inputs_of(3, one.q.slice(0, 3), one.k.slice(0, 3), one.v.slice(0, 3));
    alone.cu_seqlens = i64({0, 3}, {2});
    alone.initial_state = one.states;
    alone.state_indices = i64({2}, {1});
    alone.output_state = one.states;
    alone.output_final_state = true;
    const GdnPrefilled right = gdn_prefill(alone, on_simt());
    CHECK(same_bits(here(result.output).slice(0, 3), right.output));
    CHECK(same_bits(here(pool.pool).at(2), right.output_state.at(2)));
  }
}

TEST_CASE("prefill: a final state of the call's own is zero for a bad sequence") {
  const PrefillCase one(8);
  GdnPrefill args = one.on_device(i64({0, 3, 2, 8}, {4}));
  const GdnPrefilled result = gdn_prefill(args, on_simt());
  const Tensor states = here(result.output_state);
  CHECK(numbers(states.at(1)) == Numbers(keys * values, 0.0));
  CHECK(numbers(states.at(0)) != Numbers(keys * values, 0.0));
}

TEST_CASE("prefill: rows outside the pool read zero and store nothing (E6)") {
  const PrefillCase one(8);
  for (const std::int64_t row : {std::int64_t{4}, std::int64_t{-2}, largest, smallest}) {
    CAPTURE(row);
    const Guarded pool(one.states);
    GdnPrefill args = one.on_device(i64({0, 3, 8}, {3}));
    args.initial_state = pool.pool;
    args.state_indices = there(i64({row, 1}, {2}));
    args.output_state = Pool::in_place(pool.pool);
    args.output_state_indices = there(i64({row, 3}, {2}));
    const GdnPrefilled result = gdn_prefill(args, on_simt());
    CHECK(pool.is_guard_whole());
    for (const std::int64_t kept : {0, 1, 2}) CHECK(pool.is_row_kept(kept));
    CHECK_FALSE(pool.is_row_kept(3));
    GdnPrefill fresh = one.on_device(i64({0, 3, 8}, {3}));
    CHECK(same_bits(here(result.output).slice(0, 3), here(gdn_prefill(fresh, on_simt()).output).slice(0, 3)));
  }
}

TEST_CASE("prefill: prefixes and places of checkpoints that are no such numbers (E7, E9)") {
  const PrefillCase one(130);
  struct Bad {
    std::int64_t prefix, place;
  };
  for (const auto& [prefix, place] :
       {Bad{-1, 0}, Bad{largest, 0}, Bad{smallest, 0}, Bad{0, -1}, Bad{0, 2}, Bad{0, largest}, Bad{0, smallest}}) {
    CAPTURE(prefix);
    CAPTURE(place);
    for (const bool has_list : {false, true}) {
      const Guarded pool(one.states), checkpoints(fill(Tensor::empty(DType::f32, {3, 1, values, keys}), 5));
      GdnPrefill args = one.on_device(i64({0, 130}, {2}));
      args.initial_state = pool.pool;
      args.state_indices = there(i64({1}, {1}));
      args.output_state = Pool::in_place(pool.pool);
      args.checkpoint_every_n_tokens = 64;
      args.state_checkpoints = Pool::in_place(checkpoints.pool);
      args.checkpoint_cu_starts = there(i64({place}, {1}));
      args.prefix_lens = there(i64({prefix}, {1}));
      if (has_list) args.checkpoint_state_indices = there(i64({0, 1, 2}, {3}));
      const GdnPrefilled result = gdn_prefill(args, on_simt());
      CHECK(pool.is_guard_whole());
      CHECK(checkpoints.is_guard_whole());
      for (std::int64_t row = 0; row < 4; ++row) CHECK(pool.is_row_kept(row));
      for (std::int64_t row = 0; row < 3; ++row) CHECK(checkpoints.is_row_kept(row));
      // It read zero.
      GdnPrefill fresh = one.on_device(i64({0, 130}, {2}));
      CHECK(same_bits(here(result.output), here(gdn_prefill(fresh, on_simt()).output)));
    }
  }
}

TEST_CASE("decode: rows outside the pool are padding (E6)") {
  const Tensor states = fill(Tensor::empty(DType::f16, {3, 1, values, keys}), 4);
  const Guarded pool(states);
  GdnDecode args;
  args.inputs.q = there(fill(Tensor::empty(DType::f16, {4, 1, 1, keys}), 1));
  args.inputs.k = there(fill(Tensor::empty(DType::f16, {4, 1, 1, keys}), 2));
  args.inputs.v = there(fill(Tensor::empty(DType::f16, {4, 1, 1, values}), 3));
  args.state_pool = Pool::in_place(pool.pool);
  args.state_indices = there(i64({largest, smallest, 3, 1}, {4}));
  args.output_state_indices = there(i64({0, 1, 2, largest}, {4}));
  const GdnStates result = gdn_decode(args, on_simt());
  CHECK(pool.is_guard_whole());
  for (std::int64_t row = 0; row < 3; ++row) CHECK(pool.is_row_kept(row));
  const Tensor output = here(result.output);
  for (std::int64_t b = 0; b < 3; ++b) CHECK(numbers(output.at(b)) == Numbers(values, 0.0));
  CHECK(numbers(output.at(3)) != Numbers(values, 0.0));
}

TEST_CASE("verify: rows and slots outside the pool, a token that sees two of one position (F2)") {
  const Tensor states = fill(Tensor::empty(DType::f32, {4, 1, values, keys}), 4);
  // Lane 1 is padded by its row; in lane 0 token 2 sees two tokens of position 2.
  const Tensor pos = i64({2, 2, 3, 2, 3, 4}, {2, 3}), table = i64({0, 1, 2, 3, 4, 5, 6, 7}, {2, 4});
  const Tensor slots = i64({8, 9, 10, 11, 12, 13}, {2, 3});
  const Tensor sees = bools({1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1}, {2, 3, 3});
  const Index index = Index::make(there(pos), there(table)).draft(there(slots), there(sees));
  GdnInputs inputs;
  inputs.q = there(fill(Tensor::empty(DType::f32, {2, 3, 1, keys}), 1));
  inputs.k = there(fill(Tensor::empty(DType::f32, {2, 3, 1, keys}), 2));
  inputs.v = there(fill(Tensor::empty(DType::f32, {2, 3, 1, values}), 3));
  const Guarded pool(states);
  const GdnStates result = gdn_verify(index, inputs, Pool::in_place(pool.pool), there(i64({1, largest}, {2})),
                                      there(i64({4, smallest, 3, 0, 1, 2}, {2, 3})), on_simt());
  CHECK(pool.is_guard_whole());
  for (const std::int64_t row : {0, 1, 2}) CHECK(pool.is_row_kept(row));
  CHECK_FALSE(pool.is_row_kept(3));
  const Tensor output = here(result.output);
  CHECK(numbers(output.at(1)) == Numbers(3 * values, 0.0));
}

TEST_CASE("page tables with bad numbers name no page (E13)") {
  struct Bad {
    Integers starts, pages, indptr, last;
  };
  // The first sequence is right: 70 tokens of which 70 are new, pages 5 and 6.
  const Bad cases[] = {
      {{0, 70, 80}, {5, 6, 7}, {0, 2, 1}, {6, 10}},  // the list ends before it begins
      {{0, 70, 80}, {5, 6, 7}, {0, 2, 4}, {6, 10}},  // it ends past the ids
      {{0, 70, 80}, {5, 6, 7}, {0, 2, largest}, {6, 10}}, {{0, 70, 80}, {5, 6, 7}, {0, 2, smallest}, {6, 10}},
      {{0, 70, 80}, {5, 6, 7}, {0, 2, 3}, {6, 0}},   // a last page of no tokens
      {{0, 70, 80}, {5, 6, 7}, {0, 2, 3}, {6, 65}},  // of more than a page
      {{0, 70, 80}, {5, 6, 7}, {0, 2, 3}, {6, 9}},   // pages too few for the new tokens
      {{0, 70, 60}, {5, 6, 7}, {0, 2, 3}, {6, 10}},  // starts that fall
      {{0, 70, smallest}, {5, 6, 7}, {0, 2, 3}, {6, 10}},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.indptr);
    CAPTURE(bad.last);
    CAPTURE(bad.starts);
    PagedSequences pages;
    pages.page_indices = there(i64(bad.pages, {3}));
    pages.page_indptr = there(i64(bad.indptr, {3}));
    pages.last_page_len = there(i64(bad.last, {2}));
    pages.page_size = 64;
    const GdnPrefillSlots slots = gdn_prefill_slots(there(i64(bad.starts, {3})), pages, {}, on_simt());
    CHECK(whole_numbers(here(slots.state_indices)) == Integers{-1, -1});
    CHECK(whole_numbers(here(slots.output_state_indices)) == Integers{6, -1});
    CHECK(whole_numbers(here(slots.prefix_lens)) == Integers{0, 0});
    CHECK(whole_numbers(here(slots.checkpoint_cu_starts)) == Integers{0, std::numeric_limits<std::int32_t>::max()});
  }
  PagedSequences pages;
  pages.page_indices = there(i64({5, 6, 7}, {3}));
  pages.page_indptr = there(i64({0, 2, 3, 9, 3}, {5}));
  pages.last_page_len = there(i64({1, 1, 4, 4}, {4}));
  pages.page_size = 64;
  const GdnDecodeSlots slots = gdn_decode_slots(pages, {}, on_simt());
  // A decoded token that opens page 6; one with nothing before it; two with lists outside the ids.
  CHECK(whole_numbers(here(slots.state_indices)) == Integers{5, -1, -1, -1});
  CHECK(whole_numbers(here(slots.output_state_indices)) == Integers{6, -1, -1, -1});
}

TEST_CASE("extend and attend: rows, slots, choices and positions outside everything (A2, B5, B7)") {
  const Tensor pos = i64({0, largest, 3, smallest}, {2, 2}), table = i64({largest, 1, smallest, 16, 2, 3, -1, 0}, {2, 4}),
               row = i64({0, largest}, {2});
  const Tensor choosing = i64({3, 2, 3, 1}, {2, 2}), columns = i64({largest, smallest, 4, 1, -1, 0, 2, 3, 1, 0, 0, 3}, {2, 2, 3});
  const std::pair<Index, Index> indices[] = {
      {Index::make(pos, table, row), Index::make(there(pos), there(table), there(row))},
      {Index::make(pos, table, row).window(largest), Index::make(there(pos), there(table), there(row)).window(largest)},
      {Index::make(pos, table, row).window(1), Index::make(there(pos), there(table), there(row)).window(1)},
      {Index::make(choosing, table).select(columns), Index::make(there(choosing), there(table)).select(there(columns))},
  };
  for (const auto& [index, placed] : indices) {
    const Tensor rows_of_values = fill(Tensor::empty(DType::f32, {2, 2, 1, 5}), 1), states = fill(Tensor::empty(DType::f32, {16, 1, 5}), 2);
    const Guarded k_pool(states), v_pool(states);
    const Attended attended = attend(placed, there(rows_of_values), there(rows_of_values), there(rows_of_values),
                                     Pool::in_place(k_pool.pool), Pool::in_place(v_pool.pool), {}, on_simt());
    CHECK(k_pool.is_guard_whole());
    CHECK(v_pool.is_guard_whole());
    const Guarded pool(states);
    const Extended extended = extend(placed, there(rows_of_values), Pool::in_place(pool.pool), on_simt());
    CHECK(pool.is_guard_whole());
    const Extended on_host = extend(index, rows_of_values, states.clone());
    CHECK(same_bits(here(extended.seen), on_host.seen));
    CHECK(same_bits(here(pool.pool), on_host.pool));
    CHECK(same_bits(here(k_pool.pool), on_host.pool));
  }
}
