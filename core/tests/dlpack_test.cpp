// DLPack: tensors in and out, every dtype, who frees what and when.
#include <quire/tensor.h>

#include "core_test_helpers.h"

#include <dlpack/dlpack.h>
#include <doctest/doctest.h>

#include <array>
#include <limits>

using namespace quire;
using namespace quire::test;

namespace {

// A foreign tensor on the stack that counts how often it is given back.
struct Foreign {
  std::array<std::byte, 256> memory{};
  std::vector<std::int64_t> shape, strides;
  DLManagedTensor managed{};
  int deleted = 0;

  Foreign(std::uint8_t code, std::uint8_t bits, std::vector<std::int64_t> the_shape) : shape(std::move(the_shape)) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = memory.data();
    tensor.device = {kDLCPU, 0};
    tensor.dtype = {code, bits, 1};
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.shape = shape.data();
    tensor.strides = nullptr;
    tensor.byte_offset = 0;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }
  void set_strides(std::vector<std::int64_t> given) {
    strides = std::move(given);
    managed.dl_tensor.strides = strides.data();
  }
};

struct Code {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};
// DLPack 1.1: int 0, uint 1, float 2, bfloat 4, bool 6, float8_e4m3fn 10, float8_e5m2 12.
constexpr Code codes[] = {{DType::boolean, 6, 8}, {DType::i8, 0, 8},    {DType::u8, 1, 8},   {DType::i16, 0, 16},
                          {DType::i32, 0, 32},    {DType::i64, 0, 64},  {DType::f16, 2, 16}, {DType::bf16, 4, 16},
                          {DType::f32, 2, 32},    {DType::f64, 2, 64},  {DType::f8_e4m3fn, 10, 8}, {DType::f8_e5m2, 12, 8}};

}  // namespace

TEST_CASE("in: every dtype, dense without strides") {
  for (const Code& code : codes) {
    CAPTURE(std::string(name(code.dtype)));
    Foreign foreign(code.code, code.bits, {2, 3});
    {
      const Tensor tensor = from_dlpack(&foreign.managed);
      CHECK(tensor.dtype() == code.dtype);
      CHECK(tensor.shape() == Shape{2, 3});
      CHECK(tensor.strides() == Shape{3, 1});
      CHECK(tensor.raw() == foreign.memory.data());
      CHECK(tensor.device() == Device{});
      CHECK(foreign.deleted == 0);
    }
    CHECK(foreign.deleted == 1);
  }
}

TEST_CASE("in: the deleter runs once, when the last handle goes") {
  Foreign foreign(0, 32, {4});
  {
    Tensor one = from_dlpack(&foreign.managed);
    CHECK(one.is_sole_owner());
    Tensor part;
    {
      const Tensor other = one;
      CHECK_FALSE(one.is_sole_owner());
      part = other.slice(1, 2);
    }
    one = {};
    CHECK(foreign.deleted == 0);
    CHECK(part.raw() == foreign.memory.data() + 4);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("in: strides, byte offset, device, no axes, no elements, no deleter") {
  {
    Foreign foreign(1, 8, {2, 2});
    foreign.set_strides({5, 1});
    foreign.managed.dl_tensor.byte_offset = 16;
    const Tensor tensor = from_dlpack(&foreign.managed);
    CHECK(tensor.strides() == Shape{5, 1});
    CHECK(tensor.raw() == foreign.memory.data() + 16);
    CHECK(whole_numbers(tensor) == Integers{16, 17, 21, 22});
  }
  {
    Foreign foreign(0, 16, {});
    foreign.managed.dl_tensor.shape = nullptr;
    const Tensor scalar = from_dlpack(&foreign.managed);
    CHECK(scalar.rank() == 0);
    CHECK(scalar.integer({}) == 0x0100);
  }
  {
    Foreign foreign(2, 32, {0, 3});
    foreign.managed.dl_tensor.data = nullptr;
    const Tensor nothing = from_dlpack(&foreign.managed);
    CHECK(nothing.elements() == 0);
    CHECK(nothing.clone().elements() == 0);
  }
  {
    Foreign foreign(2, 32, {2});
    foreign.managed.dl_tensor.device = {kDLROCM, 3};
    const Tensor tensor = from_dlpack(&foreign.managed);
    CHECK(tensor.device() == Device{QUIRE_DEVICE_ROCM, 3});
    CHECK_FALSE(tensor.device().is_host());
  }
  Foreign foreign(2, 32, {2});
  foreign.managed.deleter = nullptr;
  { const Tensor tensor = from_dlpack(&foreign.managed); }
  CHECK(foreign.deleted == 0);
}

TEST_CASE("in: a dtype or lane count that Quire has not stays the caller's") {
  const std::array<std::array<std::uint8_t, 2>, 8> others = {{{1, 16}, {1, 32}, {1, 64}, {5, 64}, {2, 8}, {6, 1}, {10, 16}, {3, 64}}};
  for (const auto& [code, bits] : others) {
    CAPTURE(static_cast<int>(code));
    CAPTURE(static_cast<int>(bits));
    Foreign foreign(code, bits, {2});
    check_rejected([&] { from_dlpack(&foreign.managed); }, "dlpack", std::to_string(bits) + " bits", "f16, bf16, f32, f64");
    CHECK(foreign.deleted == 0);
  }
  Foreign lanes(2, 32, {2});
  lanes.managed.dl_tensor.dtype.lanes = 4;
  check_rejected([&] { from_dlpack(&lanes.managed); }, "dlpack", "4 lanes", "one lane");
  CHECK(lanes.deleted == 0);
  Foreign negative(2, 32, {2, -1});
  check_rejected([&] { from_dlpack(&negative.managed); }, "dlpack", "[2, -1]", "0 or more");
  CHECK(negative.deleted == 0);
  Foreign huge(2, 32, {std::int64_t{1} << 40, std::int64_t{1} << 40});
  check_rejected([&] { from_dlpack(&huge.managed); }, "dlpack", "1099511627776", "2^63");
  CHECK(huge.deleted == 0);
  Foreign axes(2, 32, {2});
  axes.managed.dl_tensor.ndim = -1;
  check_rejected([&] { from_dlpack(&axes.managed); }, "dlpack", "-1 axes", "0 or more");
  CHECK(axes.deleted == 0);
  check_rejected([] { from_dlpack(nullptr); }, "dlpack", "null", "DLManagedTensor");
}

TEST_CASE("in: a layout that Quire has not stays the caller's") {
  const std::array<std::vector<std::int64_t>, 4> layouts = {{{1, 3}, {2, 1}, {0, 1}, {-3, 1}}};
  for (const std::vector<std::int64_t>& strides : layouts) {
    CAPTURE(to_string(strides));
    Foreign foreign(2, 32, {3, 3});
    foreign.set_strides(strides);
    foreign.managed.dl_tensor.byte_offset = 64;
    const Caught error = caught([&] { from_dlpack(&foreign.managed); });
    CHECK(error.raised);
    CHECK(error.argument == "dlpack");
    CHECK(contains(error.message, to_string(strides)));
    CHECK(foreign.deleted == (error.raised ? 0 : 1));
  }
}

TEST_CASE("in: the stride of an axis of one element, of a lone axis and of an empty tensor may be any") {
  const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> layouts[] = {
      {{1, 3}, {99, 1}}, {{3, 1}, {1, 77}}, {{1, 1, 2}, {0, -5, 1}}, {{4}, {2}}, {{0, 3}, {0, 0}}};
  for (const auto& [shape, strides] : layouts) {
    CAPTURE(shape);
    Foreign foreign(0, 8, shape);
    foreign.set_strides(strides);
    { CHECK(from_dlpack(&foreign.managed).shape() == shape); }
    CHECK(foreign.deleted == 1);
  }
}

TEST_CASE("out: every dtype, and the memory lives until the deleter is called") {
  for (const Code& code : codes) {
    CAPTURE(std::string(name(code.dtype)));
    DLManagedTensor* managed = nullptr;
    std::byte* memory = nullptr;
    {
      const Tensor tensor = Tensor::zeros(code.dtype, {2, 3});
      memory = tensor.raw();
      managed = to_dlpack(tensor);
    }
    REQUIRE(managed != nullptr);
    const DLTensor& out = managed->dl_tensor;
    CHECK(static_cast<std::byte*>(out.data) + out.byte_offset == memory);
    CHECK(out.dtype.code == code.code);
    CHECK(out.dtype.bits == code.bits);
    CHECK(out.dtype.lanes == 1);
    REQUIRE(out.ndim == 2);
    CHECK(out.shape[0] == 2);
    CHECK(out.shape[1] == 3);
    CHECK(out.device.device_type == kDLCPU);
    CHECK(static_cast<unsigned char*>(out.data)[0] == 0);
    managed->deleter(managed);
  }
  check_rejected([] { to_dlpack(Tensor()); }, "dlpack", "undefined", "a tensor");
}

TEST_CASE("out: shares memory, strides and device; counts as an owner until given back") {
  Tensor tensor = Tensor::empty_padded(DType::i32, {2, 2}, 6);
  for (std::int32_t i = 0; i < 12; ++i) tensor.data<std::int32_t>()[i] = i;
  DLManagedTensor* managed = to_dlpack(tensor);
  CHECK_FALSE(tensor.is_sole_owner());
  CHECK(managed->dl_tensor.strides[0] == 6);
  CHECK(managed->dl_tensor.strides[1] == 1);
  static_cast<std::int32_t*>(managed->dl_tensor.data)[6] = 60;
  CHECK(tensor.integer(Shape{1, 0}) == 60);
  managed->deleter(managed);
  CHECK(tensor.is_sole_owner());
}

TEST_CASE("out and in again: the same memory, freed once") {
  Foreign foreign(0, 64, {3});
  {
    Tensor back;
    {
      const Tensor tensor = from_dlpack(&foreign.managed);
      back = from_dlpack(to_dlpack(tensor.slice(1, 2)));
    }
    CHECK(foreign.deleted == 0);
    CHECK(back.raw() == foreign.memory.data() + 8);
    CHECK(back.shape() == Shape{2});
    CHECK(back.dtype() == DType::i64);
  }
  CHECK(foreign.deleted == 1);
}
