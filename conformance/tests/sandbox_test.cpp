// The sandbox: what may not be written shows by name, what must be written holds the fill, what shares memory stays together.
#include "judge/sandbox.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "abi_view.h"
#include "case/reserved.h"

namespace {

using quire::CallTensor;
using quire::DType;
using quire::TensorRole;
using quire::conformance::Sandbox;
using quire::conformance::View;

constexpr std::byte fill{0x5A};

// A store of two tokens: rows of three numbers at a stride of five in the pool, of four in the values.
struct ExtendCall {
  ExtendCall() {
    for (std::size_t i = 0; i < pool_data.size(); ++i) pool_data[i] = static_cast<float>(i);
    index.struct_size = sizeof index;
    index.kind = QUIRE_INDEX_TABLED;
    index.pos = &pos.abi;
    index.table = &table.abi;
    index.reads = 1;
  }
  std::vector<std::int64_t> positions{0, 1}, slots{3, 1, 0, 2};
  std::vector<float> values_data = std::vector<float>(8, 7), pool_data = std::vector<float>(20), seen_data = std::vector<float>(12, 9);
  View pos{positions.data(), QUIRE_I64, {1, 2}}, table{slots.data(), QUIRE_I64, {1, 4}},
      values{values_data.data(), QUIRE_F32, {1, 2, 3}, {8, 4, 1}}, pool{pool_data.data(), QUIRE_F32, {4, 3}, {5, 1}},
      seen{seen_data.data(), QUIRE_F32, {1, 4, 3}};
  quire_index index{};
  quire_extend_args args{sizeof args, &index, &values.abi, &pool.abi, &seen.abi};
};

std::byte* data_of(const Sandbox& sandbox, std::string_view name) { return static_cast<std::byte*>(sandbox.call().tensor(name)->data); }

std::int64_t bytes_of(const quire_tensor& tensor) {
  std::int64_t last = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  return (last + 1) * quire::size_of(static_cast<DType>(tensor.dtype));
}

// What is said after one byte of a sandbox was flipped, `offset` bytes from a tensor's first.
std::vector<std::string> said_of(const ExtendCall& call, std::string_view name, std::int64_t offset) {
  const Sandbox sandbox(QUIRE_OP_EXTEND, &call.args, fill);
  CHECK(sandbox.violations().empty());
  data_of(sandbox, name)[offset] ^= std::byte{1};
  return sandbox.violations();
}

std::string one_line(const std::vector<std::string>& lines) {
  return lines.size() == 1 ? lines[0] : std::to_string(lines.size()) + " lines";
}

}  // namespace

TEST_CASE("sandbox: a byte beside a tensor's memory is reported by the tensor's name") {
  const ExtendCall call;
  for (const std::string name : {"index.pos", "index.table", "values", "pool", "seen"}) {
    const std::int64_t bytes = bytes_of(*quire::Call(QUIRE_OP_EXTEND, &call.args).tensor(name));
    for (const std::int64_t distance : {1, 200}) {
      CHECK(one_line(said_of(call, name, -distance)) == name + ": a byte before its memory was changed");
      CHECK(one_line(said_of(call, name, bytes - 1 + distance)) == name + ": a byte behind its memory was changed");
    }
  }
}

TEST_CASE("sandbox: inputs are read-only, each byte of them") {
  const ExtendCall call;
  for (const std::string name : {"index.pos", "index.table", "values"}) {
    const std::int64_t bytes = bytes_of(*quire::Call(QUIRE_OP_EXTEND, &call.args).tensor(name));
    for (std::int64_t n = 0; n < bytes; ++n) {
      CHECK(one_line(said_of(call, name, n)) ==
            name + ": byte " + std::to_string(n) + " of its memory was changed, which the call may not write");
    }
  }
}

TEST_CASE("sandbox: of what the call writes, the elements may change and the stride gaps may not") {
  const ExtendCall call;
  for (std::int64_t n = 0; n < bytes_of(call.pool.abi); ++n) {
    const bool is_gap = n / 4 % 5 >= 3;
    CHECK(said_of(call, "pool", n).size() == (is_gap ? 1 : 0));
    if (is_gap) CHECK(one_line(said_of(call, "pool", n)).starts_with("pool: byte " + std::to_string(n) + " "));
  }
  for (std::int64_t n = 0; n < bytes_of(call.seen.abi); ++n) CHECK(said_of(call, "seen", n).empty());
}

TEST_CASE("sandbox: several faults are all reported, one a piece of memory") {
  const ExtendCall call;
  const Sandbox sandbox(QUIRE_OP_EXTEND, &call.args, fill);
  data_of(sandbox, "values")[0] ^= std::byte{1};
  data_of(sandbox, "seen")[-1] ^= std::byte{1};
  data_of(sandbox, "seen")[-2] ^= std::byte{1};
  CHECK(sandbox.violations().size() == 2);
}

TEST_CASE("sandbox: what must be written holds the fill, what may be written holds what it held") {
  const ExtendCall call;
  for (const std::byte pattern : {std::byte{0xFF}, std::byte{0x5A}}) {
    const Sandbox sandbox(QUIRE_OP_EXTEND, &call.args, pattern);
    const std::byte* seen = data_of(sandbox, "seen");
    CHECK(std::all_of(seen, seen + bytes_of(call.seen.abi), [&](std::byte byte) { return byte == pattern; }));
    CHECK(std::memcmp(data_of(sandbox, "pool"), call.pool_data.data(), static_cast<std::size_t>(bytes_of(call.pool.abi))) == 0);
    CHECK(std::memcmp(data_of(sandbox, "values"), call.values_data.data(), static_cast<std::size_t>(bytes_of(call.values.abi))) == 0);
  }
  // The caller's own memory is left alone.
  CHECK(call.seen_data == std::vector<float>(12, 9));
}

TEST_CASE("sandbox: what lies around a tensor is NaN as a float and outside every pool as an integer") {
  const ExtendCall call;
  const Sandbox sandbox(QUIRE_OP_EXTEND, &call.args, fill);
  float before, behind;
  std::memcpy(&before, data_of(sandbox, "values") - sizeof before, sizeof before);
  std::memcpy(&behind, data_of(sandbox, "values") + bytes_of(call.values.abi), sizeof behind);
  CHECK(std::isnan(before));
  CHECK(std::isnan(behind));
  std::int64_t slot;
  std::memcpy(&slot, data_of(sandbox, "index.table") + 4 * sizeof slot, sizeof slot);
  CHECK(slot == -1);
}

TEST_CASE("sandbox: memory is as aligned as the caller's, no more") {
  const ExtendCall call;
  const Sandbox sandbox(QUIRE_OP_EXTEND, &call.args, fill);
  for (const CallTensor& entry : sandbox.call().tensors()) {
    const quire::Call original(QUIRE_OP_EXTEND, &call.args);
    const auto given = reinterpret_cast<std::uintptr_t>(original.tensor(entry.name)->data),
               copy = reinterpret_cast<std::uintptr_t>(entry.tensor->data);
    CHECK_MESSAGE(given % 64 == copy % 64, entry.name);
    CHECK(given != copy);
  }
}

TEST_CASE("sandbox: copying back brings what the call may write, and nothing else") {
  ExtendCall call;
  const std::vector<float> before = call.pool_data;
  const Sandbox sandbox(QUIRE_OP_EXTEND, &call.args, fill);
  const std::vector<float> threes(20, 3);
  std::memcpy(data_of(sandbox, "pool"), threes.data(), static_cast<std::size_t>(bytes_of(call.pool.abi)));
  std::memcpy(data_of(sandbox, "seen"), threes.data(), 12 * sizeof(float));
  std::memcpy(data_of(sandbox, "values"), threes.data(), static_cast<std::size_t>(bytes_of(call.values.abi)));
  sandbox.copy_back();
  for (std::size_t n = 0; n < call.pool_data.size(); ++n) CHECK(call.pool_data[n] == (n % 5 < 3 ? 3.0F : before[n]));
  CHECK(call.seen_data == std::vector<float>(12, 3));
  CHECK(call.values_data == std::vector<float>(8, 7));
}

namespace {

// A prefill of one token whose states lie in one pool: read at its row 0, written at the rows from `first` on.
struct PrefillCall {
  explicit PrefillCall(std::int64_t first) : output_state{states.data() + first * 4, QUIRE_F32, {3 - first, 1, 2, 1}, {4, 2, 1, 1}} {
    args.struct_size = sizeof args;
    args.q = &q.abi;
    args.k = &q.abi;
    args.v = &v.abi;
    args.cu_seqlens = &bounds.abi;
    args.initial_state = &initial_state.abi;
    args.output_state = &output_state.abi;
    args.output = &output.abi;
    args.scale = 1;
  }
  std::vector<float> numbers{1, 2}, states = std::vector<float>(12, 5), results{0, 0};
  std::vector<std::int32_t> starts{0, 1};
  View q{numbers.data(), QUIRE_F32, {1, 1, 1}}, v{numbers.data(), QUIRE_F32, {1, 1, 2}}, bounds{starts.data(), QUIRE_I32, {2}},
      initial_state{states.data(), QUIRE_F32, {3, 1, 2, 1}, {4, 2, 1, 1}}, output_state, output{results.data(), QUIRE_F32, {1, 1, 2}};
  quire_gdn_prefill_args args{};
};

}  // namespace

TEST_CASE("sandbox: tensors that share memory share it there too, at the same distance") {
  for (const std::int64_t first : {0, 1}) {
    const PrefillCall call(first);
    const Sandbox sandbox(QUIRE_OP_GDN_PREFILL, &call.args, fill);
    CHECK(data_of(sandbox, "output_state") - data_of(sandbox, "initial_state") == first * 16);
    CHECK(data_of(sandbox, "q") == data_of(sandbox, "k"));
    // A store through one is what the other holds, and no fault.
    const float stored = 42;
    std::memcpy(data_of(sandbox, "output_state"), &stored, sizeof stored);
    float read;
    std::memcpy(&read, data_of(sandbox, "initial_state") + first * 16, sizeof read);
    CHECK(read == 42);
    CHECK(sandbox.violations().empty());
    // The gap behind row 1 belongs to both.
    data_of(sandbox, "initial_state")[16 + 8] ^= std::byte{1};
    CHECK(one_line(sandbox.violations()) ==
          "initial_state and output_state: byte 24 of its memory was changed, which the call may not write");
  }
  // Row 0 is read alone where the output begins at row 1.
  const PrefillCall call(1);
  const Sandbox sandbox(QUIRE_OP_GDN_PREFILL, &call.args, fill);
  data_of(sandbox, "initial_state")[0] ^= std::byte{1};
  CHECK(one_line(sandbox.violations()) == "initial_state: byte 0 of its memory was changed, which the call may not write");
}

TEST_CASE("sandbox: empty tensors have no memory and no faults") {
  PrefillCall call(0);
  const View empty(nullptr, QUIRE_F32, {0, 1, 2});
  call.args.output = &empty.abi;
  const Sandbox sandbox(QUIRE_OP_GDN_PREFILL, &call.args, fill);
  CHECK(sandbox.violations().empty());
  sandbox.copy_back();
}

TEST_CASE("sandbox: reserved pools are copied where they are used, and what changes there comes back") {
  constexpr std::int64_t width = 1 << 16, slots = (std::int64_t{1} << 31) / width + 2;
  const quire::Tensor pool = quire::conformance::reserve_tensor(DType::i8, {slots, width}, "pool");
  pool.raw()[(slots - 1) * width + 5] = std::byte{11};
  std::vector<std::int64_t> positions{0}, numbers{slots - 1};
  std::vector<std::int8_t> values_data(width, 3), seen_data(width);
  const View pos(positions.data(), QUIRE_I64, {1, 1}), table(numbers.data(), QUIRE_I64, {1, 1}),
      values(values_data.data(), QUIRE_I8, {1, 1, width}), seen(seen_data.data(), QUIRE_I8, {1, 1, width});
  const quire_tensor pool_view = pool.view();
  quire_index index{};
  index.struct_size = sizeof index;
  index.kind = QUIRE_INDEX_TABLED;
  index.pos = &pos.abi;
  index.table = &table.abi;
  index.reads = 1;
  const quire_extend_args args{sizeof args, &index, &values.abi, &pool_view, &seen.abi};
  const Sandbox sandbox(QUIRE_OP_EXTEND, &args, fill);
  std::byte* copy = data_of(sandbox, "pool");
  CHECK(copy != pool.raw());
  CHECK(copy[(slots - 1) * width + 5] == std::byte{11});
  CHECK(copy[7] == std::byte{0});
  copy[(slots - 1) * width] = std::byte{12};
  copy[7] = std::byte{13};
  CHECK(sandbox.violations().empty());
  CHECK(pool.raw()[(slots - 1) * width] == std::byte{0});
  sandbox.copy_back();
  CHECK(pool.raw()[(slots - 1) * width] == std::byte{12});
  CHECK(pool.raw()[(slots - 1) * width + 5] == std::byte{11});
  CHECK(pool.raw()[7] == std::byte{13});
}

TEST_CASE("sandbox: a reserved pool that is only read may not change either") {
  constexpr std::int64_t rows = std::int64_t{1} << 27;
  const quire::Tensor states = quire::conformance::reserve_tensor(DType::f32, {rows, 1, 2, 1}, "initial_state");
  PrefillCall call(0);
  const quire_tensor view = states.view();
  call.args.initial_state = &view;
  const Sandbox sandbox(QUIRE_OP_GDN_PREFILL, &call.args, fill);
  CHECK(sandbox.violations().empty());
  // Reading makes pages resident and is no fault.
  CHECK(data_of(sandbox, "initial_state")[4096] == std::byte{0});
  CHECK(sandbox.violations().empty());
  data_of(sandbox, "initial_state")[rows * 8 - 3] = std::byte{1};
  CHECK(one_line(sandbox.violations()) ==
        "initial_state: byte " + std::to_string(rows * 8 - 3) + " of its memory was changed, which the call may not write");
}

TEST_CASE("sandbox: elements are visited in row-major order, at their strides") {
  std::vector<float> numbers(30);
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = static_cast<float>(n);
  const View view(numbers.data(), QUIRE_F32, {2, 3, 2}, {15, 4, 1});
  std::vector<float> visited;
  quire::conformance::for_each_element(view.abi, 4, [&](const std::byte* element) {
    float number;
    std::memcpy(&number, element, sizeof number);
    visited.push_back(number);
  });
  CHECK(visited == std::vector<float>{0, 1, 4, 5, 8, 9, 15, 16, 19, 20, 23, 24});
}
