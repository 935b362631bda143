// Pools of more than 2^31 elements, of which a call touches a few pages: no offset is formed in 32 bits.
#include "gdn_test_helpers.h"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <cstdio>

using namespace quire;
using namespace quire::test;

namespace {

// Reserved addresses; memory is had for what is touched alone.
class Reserved {
 public:
  explicit Reserved(std::size_t size) : size_(size) {
    memory_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ != MAP_FAILED) madvise(memory_, size_, MADV_NOHUGEPAGE);
  }
  ~Reserved() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  bool is_there() const {
    if (memory_ != MAP_FAILED) return true;
    std::printf("SKIPPED a sparse pool: no %zu bytes of address space\n", size_);
    return false;
  }
  void* data() const { return memory_; }
  // Pages of 4,096 bytes that hold anything.
  std::int64_t resident() const {
    std::vector<unsigned char> pages((size_ + 4095) / 4096);
    if (mincore(memory_, size_, pages.data()) != 0) return -1;
    std::int64_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count;
  }

 private:
  std::size_t size_;
  void* memory_;
};

// Rows of 1,024 elements: slot 2^21 begins at element 2^31, slot 2^22 at 2^32.
constexpr std::int64_t row = 1024;
constexpr std::int64_t slots = (std::int64_t{1} << 22) + 16;
constexpr std::int64_t far_slots[] = {(std::int64_t{1} << 21) - 1, std::int64_t{1} << 21, (std::int64_t{1} << 22) + 5, 0, 3};

// A row of five columns whose slots are the far ones, and the same index over a small pool's slots 0 to 4.
Index far_index(const Tensor& pos) {
  return Index::make(pos, i64(std::vector<std::int64_t>(std::begin(far_slots), std::end(far_slots)), {1, 5}));
}
Index near_index(const Tensor& pos) { return Index::make(pos, i64({0, 1, 2, 3, 4}, {1, 5})); }

// Rows of the small pool, put where the far ones are.
void scatter(const Tensor& small, const Tensor& big) {
  for (std::int64_t s = 0; s < 5; ++s) {
    std::memcpy(big.at(far_slots[s]).raw(), small.at(s).raw(), static_cast<std::size_t>(size_of(small.dtype()) * small.stride(0)));
  }
}
bool rows_agree(const Tensor& small, const Tensor& big) {
  for (std::int64_t s = 0; s < 5; ++s) {
    if (bytes(big.at(far_slots[s])) != bytes(small.at(s))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("extend at slots beyond 2^31 and 2^32 elements") {
  const Reserved memory(static_cast<std::size_t>(slots * row));
  if (!memory.is_there()) return;
  const Tensor big = Tensor::borrow(memory.data(), DType::i8, {slots, row});
  const Tensor small = filled(DType::i8, {5, row}, 3, -100, 100);
  scatter(small, big);
  const std::int64_t before = memory.resident();
  const Tensor pos = i64({1, 2}, {1, 2});
  const Tensor values = filled(DType::i8, {1, 2, row}, 4, -100, 100);
  const Extended expected = extend(near_index(pos), values, small);
  const Extended got = extend(far_index(pos), values, Pool::in_place(big));
  CHECK(got.pool.raw() == big.raw());
  CHECK(same_bits(got.seen, expected.seen));
  CHECK(rows_agree(expected.pool, big));
  CHECK(bytes(big.at(far_slots[2])) == bytes(values.at(0).at(1)));
  CHECK(memory.resident() <= before + 2);  // nothing else is touched: C9, in the call's tokens and never in N
  // A slot one past the pool addresses nothing.
  const Index past = Index::make(i64({0}, {1, 1}), i64({slots}, {1, 1}));
  CHECK(bytes(extend(past, filled(DType::i8, {1, 1, row}, 5), Pool::in_place(big)).seen) == std::string(static_cast<std::size_t>(row), '\0'));
  CHECK(rows_agree(expected.pool, big));
}

TEST_CASE("attend at slots beyond 2^31 elements, keys and values interleaved") {
  const Reserved memory(static_cast<std::size_t>(slots * 2 * row * 2));
  if (!memory.is_there()) return;
  auto* base = static_cast<std::byte*>(memory.data());
  // [N, 2, 4, 256] in f16: slot 2^21 of either pool begins beyond element 2^32.
  const Tensor k_big = Tensor::borrow(base, DType::f16, {slots, 4, 256}, {2 * row, 256, 1});
  const Tensor v_big = Tensor::borrow(base + row * 2, DType::f16, {slots, 4, 256}, {2 * row, 256, 1});
  const Tensor k_small = filled(DType::f16, {5, 4, 256}, 3), v_small = filled(DType::f16, {5, 4, 256}, 4);
  scatter(k_small, k_big);
  scatter(v_small, v_big);
  const Tensor pos = i64({3, 4}, {1, 2});
  const Tensor q = filled(DType::f16, {1, 2, 8, 256}, 5), k = filled(DType::f16, {1, 2, 4, 256}, 6), v = filled(DType::f16, {1, 2, 4, 256}, 7);
  const Attended expected = attend(near_index(pos), q, k, v, k_small, v_small);
  const std::int64_t before = memory.resident();
  const Attended got = attend(far_index(pos), q, k, v, Pool::in_place(k_big), Pool::in_place(v_big));
  CHECK(same_bits(got.out, expected.out));
  CHECK(same_bits(got.lse, expected.lse));
  CHECK(rows_agree(expected.k_pool, k_big));
  CHECK(rows_agree(expected.v_pool, v_big));
  CHECK(memory.resident() <= before + 4);
}

TEST_CASE("states at rows beyond 2^31 elements: decode, prefill and verify") {
  constexpr std::int64_t heads = 2, size = 32;
  constexpr std::int64_t state = heads * size * size;  // 2,048 elements
  constexpr std::int64_t count = (std::int64_t{1} << 20) + 8;
  constexpr std::int64_t far_read = std::int64_t{1} << 20, far_write = (std::int64_t{1} << 20) + 7;
  const Reserved memory(static_cast<std::size_t>(count * state * 2));
  if (!memory.is_there()) return;
  const Tensor big = Tensor::borrow(memory.data(), DType::bf16, {count, heads, size, size});
  const Tensor small = filled(DType::bf16, {2, heads, size, size}, 3);
  const auto put = [&] {
    std::memcpy(big.at(far_read).raw(), small.at(0).raw(), static_cast<std::size_t>(state * 2));
    std::memcpy(big.at(far_write).raw(), small.at(1).raw(), static_cast<std::size_t>(state * 2));
  };
  const auto agrees = [&](const Tensor& expected) {
    return bytes(big.at(far_read)) == bytes(expected.at(0)) && bytes(big.at(far_write)) == bytes(expected.at(1));
  };
  put();
  const std::int64_t before = memory.resident();
  const Rule rule{heads, heads, heads, size, size};
  const GdnInputs inputs = rule_inputs(1, 5, rule);
  const auto decoded = [&](Pool pool, std::int64_t read, std::int64_t write) {
    GdnDecode call;
    call.inputs = as_batch(inputs, 1);
    call.state_pool = std::move(pool);
    call.state_indices = i64({read}, {1});
    call.output_state_indices = i64({write}, {1});
    return gdn_decode(std::move(call));
  };
  const GdnStates expected = decoded(small, 0, 1);
  CHECK(same_bits(decoded(Pool::in_place(big), far_read, far_write).output, expected.output));
  CHECK(agrees(expected.state_pool));

  const auto prefilled = [&](const Tensor& pool, bool in_place, std::int64_t read, std::int64_t write) {
    GdnPrefill call;
    call.inputs = inputs;
    call.cu_seqlens = i32({0, 1}, {2});
    call.initial_state = pool;
    call.state_indices = i64({read}, {1});
    call.output_state = in_place ? Pool::in_place(pool) : Pool(pool);
    call.output_state_indices = i64({write}, {1});
    call.output_final_state = true;
    return gdn_prefill(std::move(call));
  };
  put();
  const GdnPrefilled expected_prefill = prefilled(small, false, 0, 1);
  CHECK(same_bits(prefilled(big, true, far_read, far_write).output, expected_prefill.output));
  CHECK(agrees(expected_prefill.output_state));

  const Index draft = Index::make(i64({0}, {1, 1}), i64({0}, {1, 1})).draft(i64({0}, {1, 1}), bools({1}, {1, 1, 1}));
  put();
  const GdnStates expected_verify = gdn_verify(draft, as_batch(inputs, 1), small, i64({0}, {1}), i64({1}, {1, 1}));
  CHECK(same_bits(gdn_verify(draft, as_batch(inputs, 1), Pool::in_place(big), i64({far_read}, {1}), i64({far_write}, {1, 1})).output, expected_verify.output));
  CHECK(agrees(expected_verify.state_pool));
  // A row one past the pool is no row.
  CHECK_FALSE(same_bits(decoded(Pool::in_place(big), count, far_write).output, expected.output));
  CHECK(memory.resident() <= before + 2);
}
