// Mutants that cases of ordinary size can't show: large pools, memory past the results, a million elements, the op advance.
#include "mutants/mutants.h"
#include "abi_view.h"
#include "honest/honest.h"

#include <quire/ops.h>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace {

using quire::conformance::Mutant;
using quire::conformance::Needs;
using quire::conformance::View;

const Mutant& mutant(std::string_view name) {
  for (const Mutant& one : quire::conformance::mutants()) {
    if (one.name == name) return one;
  }
  FAIL("no mutant ", name);
  return quire::conformance::mutants()[0];
}

quire_status run(const quire_backend_table* table, quire_op op, const void* args) { return table->run(nullptr, op, args, nullptr, 0); }

// One lane stores one token at `slot` of a table of one column; answers what stands at the pool's places before and after.
struct OneStore {
  OneStore(void* pool, quire_dtype dtype, std::int64_t slots, std::int64_t width, std::int64_t slot, void* values, void* seen)
      : slot_number(slot),
        pos(&position, QUIRE_I64, {1, 1}),
        table(&slot_number, QUIRE_I64, {1, 1}),
        values_view(values, dtype, {1, 1, width}),
        pool_view(pool, dtype, {slots, width}),
        seen_view(seen, dtype, {1, 1, width}) {
    index.struct_size = sizeof index;
    index.kind = QUIRE_INDEX_TABLED;
    index.pos = &pos.abi;
    index.table = &table.abi;
    index.reads = 1;
    args = {sizeof args, &index, &values_view.abi, &pool_view.abi, &seen_view.abi};
  }
  std::int64_t position = 0, slot_number;
  View pos, table, values_view, pool_view, seen_view;
  quire_index index{};
  quire_extend_args args{};
};

// Whether the last row of a pool that is mostly holes in memory is where the store went.
bool stores_far(const quire_backend_table* table, quire_dtype dtype, std::int64_t element, std::int64_t slots, std::int64_t width) {
  const std::size_t bytes = static_cast<std::size_t>(slots * width * element);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::vector<unsigned char> values(static_cast<std::size_t>(width * element), 3), seen(values.size());
  OneStore call(memory, dtype, slots, width, slots - 1, values.data(), seen.data());
  CHECK(run(table, QUIRE_OP_EXTEND, &call.args) == QUIRE_OK);
  const auto* pool = static_cast<const unsigned char*>(memory);
  const bool far = pool[bytes - 1] == 3 && pool[0] == 0;
  munmap(memory, bytes);
  return far;
}

}  // namespace

TEST_CASE("32-bit offsets show on pools past 2^31") {
  constexpr std::int64_t width = std::int64_t{1} << 16;
  const quire_backend_table* honest = quire::conformance::honest_backend();
  const quire_backend_table* elements = mutant("offsets-of-32-bits").table;
  const quire_backend_table* bytes = mutant("byte-offsets-of-32-bits").table;
  // 2^31 elements of a byte, and 2^29 of four bytes.
  CHECK(stores_far(honest, QUIRE_U8, 1, 32769, width));
  CHECK_FALSE(stores_far(elements, QUIRE_U8, 1, 32769, width));
  CHECK(stores_far(honest, QUIRE_F32, 4, 8193, width));
  CHECK(stores_far(elements, QUIRE_F32, 4, 8193, width));
  CHECK_FALSE(stores_far(bytes, QUIRE_F32, 4, 8193, width));
}

TEST_CASE("writes past tensors show in the memory around them") {
  for (const char* name : {"", "rows-copied-in-16-bytes", "element-past-output-written"}) {
    const quire_backend_table* table = *name != '\0' ? mutant(name).table : quire::conformance::honest_backend();
    std::vector<unsigned char> pool(64, 7), seen(64, 7), values(5, 3);
    OneStore call(pool.data(), QUIRE_U8, 2, 5, 1, values.data(), seen.data());
    CHECK(run(table, QUIRE_OP_EXTEND, &call.args) == QUIRE_OK);
    const bool intact = pool == [&] {
      std::vector<unsigned char> right(64, 7);
      std::fill(right.begin() + 5, right.begin() + 10, static_cast<unsigned char>(3));
      return right;
    }() && std::accumulate(seen.begin() + 5, seen.end(), 0) == 59 * 7;
    CHECK_MESSAGE(intact == (*name == '\0'), name);
  }
}

TEST_CASE("advance in mutants and in the honest backend") {
  std::int64_t positions[2][3] = {{4, 5, -1}, {-1, -1, -1}}, slots[2][2] = {{0, 1}, {2, 3}}, next[2] = {9, 9};
  const View pos(positions, QUIRE_I64, {2, 3}), table(slots, QUIRE_I64, {2, 2}), out(next, QUIRE_I64, {2, 1});
  quire_index index{};
  index.struct_size = sizeof index;
  index.kind = QUIRE_INDEX_TABLED;
  index.pos = &pos.abi;
  index.table = &table.abi;
  index.reads = 1;
  const quire_advance_args args{sizeof args, &index, &out.abi};
  const auto is_right = [&](const quire_backend_table* backend) {
    CHECK(run(backend, QUIRE_OP_ADVANCE, &args) == QUIRE_OK);
    return next[0] == 6 && next[1] == 0;
  };
  CHECK(is_right(quire::conformance::honest_backend()));
  for (const Mutant& one : quire::conformance::mutants()) {
    if (one.needs == Needs::advance_op) CHECK_MESSAGE(!is_right(one.table), one.name);
  }
}

TEST_CASE("an element in a million shows in four million") {
  constexpr std::int64_t batch = 8192, width = 512;
  std::vector<float> ones(batch * width, 1.0F), states(batch * width), output(batch * width);
  std::vector<std::int64_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0);
  const View q(ones.data(), QUIRE_F32, {batch, 1, 1, 1}), v(ones.data(), QUIRE_F32, {batch, 1, 1, width}),
      pool(states.data(), QUIRE_F32, {batch, 1, width, 1}), reads(rows.data(), QUIRE_I64, {batch}),
      out(output.data(), QUIRE_F32, {batch, 1, 1, width});
  quire_gdn_decode_args args{};
  args.struct_size = sizeof args;
  args.q = &q.abi;
  args.k = &q.abi;
  args.v = &v.abi;
  args.state_pool = &pool.abi;
  args.state_indices = &reads.abi;
  args.output = &out.abi;
  args.scale = 1;
  const auto wrong = [&](const quire_backend_table* table) {
    std::fill(states.begin(), states.end(), 0.0F);
    CHECK(run(table, QUIRE_OP_GDN_DECODE, &args) == QUIRE_OK);
    return std::count_if(output.begin(), output.end(), [](float x) { return x != 1.0F; });
  };
  CHECK(wrong(quire::conformance::honest_backend()) == 0);
  const auto count = wrong(mutant("one-in-a-million-wrong").table);
  CHECK(count > 0);
  CHECK(count < 20);
}
