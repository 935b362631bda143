// Tensors: sizes, memory limits, handles and views, single elements.
#include <quire/tensor.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>

using namespace quire;
using namespace quire::test;

namespace {
constexpr std::int64_t big = std::int64_t{1} << 40;
constexpr DType all_dtypes[] = {DType::boolean, DType::i8,  DType::u8,  DType::i16, DType::i32,       DType::i64,
                                DType::f16,     DType::bf16, DType::f32, DType::f64, DType::f8_e4m3fn, DType::f8_e5m2};
}  // namespace

TEST_CASE("dtypes: names, sizes and kinds") {
  const std::array<std::string, 12> names = {"bool", "i8", "u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8_e4m3fn", "f8_e5m2"};
  const std::array<std::int64_t, 12> sizes = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const DType dtype = all_dtypes[i];
    CAPTURE(names[i]);
    CHECK(std::string(name(dtype)) == names[i]);
    CHECK(dtype_named(names[i]) == dtype);
    CHECK(size_of(dtype) == sizes[i]);
    CHECK(is_integer(dtype) == (i >= 1 && i <= 5));
    CHECK(is_index_integer(dtype) == (i == 4 || i == 5));
    CHECK(is_float(dtype) == (i >= 6));
    CHECK(is_compute_float(dtype) == (i >= 6 && i <= 9));
    CHECK(is_state(dtype) == (i >= 6 && i != 9));
  }
  CHECK_FALSE(dtype_named("float32").has_value());
  CHECK_FALSE(dtype_named("").has_value());
}

TEST_CASE("shapes: dense strides, elements and text") {
  const Tensor tensor = Tensor::empty(DType::f32, {2, 3, 4});
  CHECK(tensor.defined());
  CHECK(static_cast<bool>(tensor));
  CHECK(tensor.rank() == 3);
  CHECK(tensor.shape() == Shape{2, 3, 4});
  CHECK(tensor.strides() == Shape{12, 4, 1});
  CHECK(tensor.size(1) == 3);
  CHECK(tensor.stride(0) == 12);
  CHECK(tensor.elements() == 24);
  CHECK(tensor.is_dense());
  CHECK(tensor.device() == Device{});
  CHECK(tensor.device().is_host());
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.raw()) % 64 == 0);
  CHECK(to_string(tensor.shape()) == "[2, 3, 4]");
  CHECK(to_string(Shape{}) == "[]");
  CHECK_FALSE(Tensor().defined());
  CHECK_FALSE(static_cast<bool>(Tensor()));
  const Tensor scalar = Tensor::zeros(DType::i32, {});
  CHECK(scalar.rank() == 0);
  CHECK(scalar.elements() == 1);
  CHECK(scalar.integer({}) == 0);
  const Tensor nothing = Tensor::zeros(DType::f64, {3, 0, 2});
  CHECK(nothing.elements() == 0);
  CHECK(nothing.is_dense());
}

TEST_CASE("counts and bytes: 64 bits, overflow is an error") {
  CHECK(count_elements(Shape{}, "x") == 1);
  CHECK(count_elements(Shape{2, 3}, "x") == 6);
  CHECK(count_elements(Shape{big, 0, 7}, "x") == 0);
  check_rejected([] { count_elements(Shape{big, 0, big}, "x"); }, "x", "[1099511627776, 0, 1099511627776]", "2^63");  // strides must fit too
  CHECK(count_elements(Shape{std::int64_t{1} << 31, (std::int64_t{1} << 32) - 1}, "x") == 9223372034707292160);
  check_rejected([] { count_elements(Shape{2, -1}, "pool"); }, "pool", "[2, -1]", "0 or more");
  check_rejected([] { count_elements(Shape{0, -1}, "pool"); }, "pool", "[0, -1]", "0 or more");
  check_rejected([] { count_elements(Shape{big, big}, "pool"); }, "pool", "[1099511627776, 1099511627776]", "2^63");
  check_rejected([] { count_elements(Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}, "x"); }, "x", "[4294967296, 2147483648]", "2^63");
  const Environment unlimited("QUIRE_MAX_MEMORY", "4000000T");
  // 2^60 elements are countable, 2^63 bytes are not.
  check_rejected([] { checked_bytes(DType::f64, Shape{std::int64_t{1} << 60}, "q"); }, "q", "f64[1152921504606846976]", "bytes");
  CHECK(checked_bytes(DType::i8, Shape{std::int64_t{1} << 60}, "q") == std::int64_t{1} << 60);
}

TEST_CASE("a tensor with an empty axis has no elements; its other axes may be large but not overflow") {
  for (const Shape& shape : {Shape{big, 4, 0}, Shape{0, big, 4}, Shape{big, 0, 4}}) {
    const Tensor tensor = Tensor::empty(DType::f32, shape);
    CHECK(tensor.elements() == 0);
    CHECK(tensor.is_dense());
    CHECK(tensor.clone().shape() == shape);
    CHECK(Tensor::borrow(nullptr, DType::f32, shape).elements() == 0);
  }
  for (const Shape& shape : {Shape{big, big, 0}, Shape{0, big, big}}) {
    check_rejected([&] { Tensor::empty(DType::f32, shape, "q"); }, "q", "1099511627776", "2^63");
    check_rejected([&] { Tensor::borrow(nullptr, DType::f32, shape); }, "shape", "1099511627776", "2^63");
    check_rejected([&] { Tensor::borrow(nullptr, DType::f32, shape, {1, 1, 1}); }, "shape", "1099511627776", "2^63");
  }
}

TEST_CASE("QUIRE_MAX_MEMORY bounds what one tensor may have") {
  {
    const Environment unset("QUIRE_MAX_MEMORY", nullptr);
    CHECK(allowed_bytes() > 1 << 20);
    check_rejected([] { Tensor::empty(DType::f64, {std::int64_t{1} << 50}, "out"); }, "out", "f64[1125899906842624]", "QUIRE_MAX_MEMORY");
    check_rejected([] { Tensor::zeros(DType::i8, {big, big}); }, "shape", "[1099511627776, 1099511627776]", "2^63");
  }
  const std::pair<const char*, std::int64_t> sizes[] = {{"1000", 1000},          {"1K", 1024},         {"2k", 2048}, {"3M", 3 << 20},
                                                        {"1.5G", 3LL << 29}, {"2T", 2LL << 40}, {"1e6", 1000000}};
  for (const auto& [text, bytes_allowed] : sizes) {
    CAPTURE(text);
    const Environment limit("QUIRE_MAX_MEMORY", text);
    CHECK(allowed_bytes() == bytes_allowed);
  }
  {
    const Environment limit("QUIRE_MAX_MEMORY", "1K");
    CHECK(Tensor::empty(DType::f32, {256}).elements() == 256);
    check_rejected([] { Tensor::empty(DType::f32, {257}, "seen"); }, "seen", "f32[257] of 1028 bytes", "1024 bytes");
    check_rejected([] { Tensor::empty_padded(DType::f32, {3, 2}, 100); }, "row_stride", "1200 bytes", "1024 bytes");
    // Every builder and op names its own argument.
    check_rejected([] { rows(1000, {1}); }, "context", "8000 bytes", "1024 bytes");
    check_rejected([] { Index::whole(1, 1000); }, "seq", "8000 bytes", "1024 bytes");
  }
  for (const char* bad : {"0", "-5", "lots", "5X", "1KB", "nan", "inf", "9e30"}) {
    CAPTURE(bad);
    const Environment limit("QUIRE_MAX_MEMORY", bad);
    check_rejected([] { allowed_bytes(); }, "QUIRE_MAX_MEMORY", bad, "positive number of bytes");
  }
  const Environment empty_text("QUIRE_MAX_MEMORY", "");
  CHECK(allowed_bytes() > 1 << 20);
}

TEST_CASE("of: values and shape must agree") {
  CHECK(whole_numbers(Tensor::of({4, 5, 6})) == Integers{4, 5, 6});
  CHECK(Tensor::of({4, 5, 6}).dtype() == DType::i64);
  CHECK(i32({1, 2}, {2}).dtype() == DType::i32);
  CHECK(f32({1.5f}, {1}).dtype() == DType::f32);
  CHECK(bools({1, 0}, {2}).dtype() == DType::boolean);
  CHECK(i64({}, {0, 3}).elements() == 0);
  check_rejected([] { i64({1, 2, 3}, {2, 2}); }, "values", "3", "4 for shape [2, 2]");
}

TEST_CASE("a copied handle shares memory, a clone does not") {
  Tensor one = f32({1, 2, 3, 4}, {2, 2});
  CHECK(one.is_sole_owner());
  {
    const Tensor other = one;
    CHECK(other.raw() == one.raw());
    CHECK_FALSE(one.is_sole_owner());
    CHECK_FALSE(other.is_sole_owner());
    other.data<float>()[0] = 9;
  }
  CHECK(one.is_sole_owner());
  CHECK(numbers(one) == Numbers{9, 2, 3, 4});
  const Tensor copy = one.clone();
  CHECK(copy.raw() != one.raw());
  CHECK(copy.is_sole_owner());
  CHECK(same_bits(copy, one));
  copy.data<float>()[1] = 7;
  CHECK(one.data<float>()[1] == 2);
  CHECK_FALSE(Tensor().clone().defined());
  const Tensor part = one.slice(0, 1);
  CHECK_FALSE(one.is_sole_owner());
  CHECK_FALSE(part.is_sole_owner());
}

TEST_CASE("borrowed memory has no owner, shared memory keeps its owner alive") {
  std::array<std::int32_t, 6> memory = {0, 1, 2, 3, 4, 5};
  const Tensor lent = Tensor::borrow(memory.data(), DType::i32, {3}, {2});
  CHECK(lent.is_sole_owner());
  CHECK_FALSE(lent.is_dense());
  CHECK(whole_numbers(lent) == Integers{0, 2, 4});
  const Tensor dense = Tensor::borrow(memory.data(), DType::i32, {2, 3});
  CHECK(dense.strides() == Shape{3, 1});
  CHECK(dense.raw() == reinterpret_cast<std::byte*>(memory.data()));
  auto owner = std::make_shared<std::array<float, 2>>(std::array<float, 2>{1, 2});
  const std::weak_ptr<std::array<float, 2>> watch = owner;
  Tensor shared = Tensor::share(owner, owner->data(), DType::f32, {2});
  owner.reset();
  CHECK_FALSE(watch.expired());
  CHECK(numbers(shared) == Numbers{1, 2});
  shared = {};
  CHECK(watch.expired());
  check_rejected([&] { Tensor::borrow(memory.data(), DType::i32, {2, 3}, {3}); }, "strides", "[3]", "2");
  check_rejected([&] { Tensor::borrow(memory.data(), DType::i32, {2, -3}); }, "shape", "[2, -3]", "0 or more");
}

TEST_CASE("padded tensors: axis 0 at its own stride") {
  const Tensor padded = Tensor::empty_padded(DType::i32, {2, 2, 2}, 7);
  CHECK(padded.strides() == Shape{7, 2, 1});
  CHECK(padded.elements() == 8);
  CHECK_FALSE(padded.is_dense());
  for (std::int32_t i = 0; i < 14; ++i) padded.data<std::int32_t>()[i] = i;
  CHECK(whole_numbers(padded) == Integers{0, 1, 2, 3, 7, 8, 9, 10});
  const Tensor copy = padded.clone();
  CHECK(copy.is_dense());
  CHECK(whole_numbers(copy) == Integers{0, 1, 2, 3, 7, 8, 9, 10});
  CHECK(Tensor::empty_padded(DType::i32, {2, 4}, 4).is_dense());
  check_rejected([] { Tensor::empty_padded(DType::i32, {2, 4}, 3); }, "row_stride", "3", "4");
  check_rejected([] { Tensor::empty_padded(DType::i32, {}, 3, "pool"); }, "pool", "without axes", "axis 0");
  check_rejected([] { Tensor::empty_padded(DType::i32, {2, 4}, -1, "pool"); }, "pool", "-1", "4");
}

TEST_CASE("clone walks any strides") {
  std::array<std::int16_t, 12> memory{};
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::int16_t>(i);
  const Tensor turned = Tensor::borrow(memory.data(), DType::i16, {3, 2, 2}, {1, 6, 3});
  const Tensor copy = turned.clone();
  CHECK(copy.strides() == Shape{4, 2, 1});
  CHECK(whole_numbers(copy) == Integers{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  const Tensor on_device = Tensor::borrow(memory.data(), DType::i16, {3}, {}, Device{QUIRE_DEVICE_CUDA, 1});
  const Caught error = caught([&] { (void)on_device.clone(); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::unsupported);
}

TEST_CASE("at and slice cut axis 0 and share the memory") {
  const Tensor tensor = i64({0, 1, 2, 3, 4, 5}, {3, 2});
  const Tensor row = tensor.at(1);
  CHECK(row.shape() == Shape{2});
  CHECK(whole_numbers(row) == Integers{2, 3});
  CHECK(row.raw() == tensor.raw() + 16);
  CHECK(row.at(1).rank() == 0);
  CHECK(row.at(1).integer({}) == 3);
  const Tensor part = tensor.slice(1, 2);
  CHECK(part.shape() == Shape{2, 2});
  CHECK(whole_numbers(part) == Integers{2, 3, 4, 5});
  part.data<std::int64_t>()[0] = 20;
  CHECK(tensor.integer(Shape{1, 0}) == 20);
  CHECK(tensor.slice(3, 0).elements() == 0);
  CHECK(tensor.slice(0, 3).raw() == tensor.raw());
  check_rejected([&] { (void)tensor.slice(2, 2); }, "slice", "[2, 2 + 2)", "[0, 3)");
  check_rejected([&] { (void)tensor.slice(-1, 1); }, "slice", "-1", "[0, 3)");
  check_rejected([&] { (void)tensor.slice(0, -1); }, "slice", "-1", "[0, 3)");
  check_rejected([&] { (void)tensor.slice(1, std::numeric_limits<std::int64_t>::max()); }, "slice", "9223372036854775807", "[0, 3)");
  check_rejected([&] { (void)tensor.at(3); }, "slice", "3", "[0, 3)");
  check_rejected([&] { (void)row.at(0).at(0); }, "slice", "without axes", "axis 0");
}

TEST_CASE("reshaped: dense tensors of as many elements") {
  const Tensor tensor = i64({0, 1, 2, 3, 4, 5}, {3, 2});
  const Tensor flat = tensor.reshaped({6});
  CHECK(flat.raw() == tensor.raw());
  CHECK(flat.strides() == Shape{1});
  CHECK(tensor.reshaped({1, 2, 3}).strides() == Shape{6, 3, 1});
  check_rejected([&] { (void)tensor.reshaped({4}); }, "shape", "[4]", "6 elements");
  check_rejected([&] { (void)tensor.reshaped({-6}); }, "shape", "[-6]", "0 or more");
  const Tensor padded = Tensor::empty_padded(DType::i32, {2, 2}, 3);
  check_rejected([&] { (void)padded.reshaped({4}); }, "shape", "[4]", "dense");
}

TEST_CASE("single elements of every dtype") {
  const std::pair<DType, std::vector<double>> exact[] = {
      {DType::boolean, {0, 1}},
      {DType::i8, {-128, 127, 0}},
      {DType::u8, {0, 255}},
      {DType::i16, {-32768, 32767}},
      {DType::i32, {-2147483648.0, 2147483647.0}},
      {DType::i64, {-9223372036854775808.0, 4503599627370497.0}},
      {DType::f16, {65504, -0x1p-24, 1.0009765625}},
      {DType::bf16, {0x1.fep127, 0x1p-133, 1.0078125}},
      {DType::f32, {0x1p-149, -0x1.fffffep127, 1.5}},
      {DType::f64, {0x1p-1074, 0.1, -1e308}},
      {DType::f8_e4m3fn, {448, -0x1p-9, 1.125}},
      {DType::f8_e5m2, {57344, 0x1p-16, -1.25}},
  };
  for (const auto& [dtype, values] : exact) {
    CAPTURE(std::string(name(dtype)));
    const Tensor tensor = Tensor::zeros(dtype, {3, 2});
    for (const double value : values) {
      write_number(dtype, tensor.raw() + 3 * size_of(dtype), value);
      CHECK(tensor.number(Shape{1, 1}) == value);
      CHECK(tensor.number(Shape{1, 0}) == 0);
      CHECK(tensor.number(Shape{2, 0}) == 0);
      if (std::fabs(value) < 0x1p62 && value == std::trunc(value)) CHECK(tensor.integer(Shape{1, 1}) == static_cast<std::int64_t>(value));
    }
  }
  const Tensor wide = i64({std::numeric_limits<std::int64_t>::max()}, {1});
  CHECK(wide.integer(Shape{0}) == std::numeric_limits<std::int64_t>::max());
  const Tensor tensor = Tensor::zeros(DType::f32, {2, 2});
  check_rejected([&] { (void)tensor.number(Shape{1}); }, "indices", "[1]", "2");
  check_rejected([&] { (void)tensor.number(Shape{0, 2}); }, "indices", "[0, 2]", "[2, 2]");
  check_rejected([&] { (void)tensor.integer(Shape{-1, 0}); }, "indices", "[-1, 0]", "[2, 2]");
}

TEST_CASE("a stored number is rounded once; fp8 saturates (E5)") {
  const Tensor half = Tensor::zeros(DType::f16, {1});
  write_number(DType::f16, half.raw(), 1.0 + 0x1p-11 + 0x1p-40);
  CHECK(half.number(Shape{0}) == 1.0 + 0x1p-10);
  write_number(DType::f16, half.raw(), 1e6);
  CHECK(std::isinf(half.number(Shape{0})));
  for (const auto& [dtype, largest] : {std::pair{DType::f8_e4m3fn, 448.0}, {DType::f8_e5m2, 57344.0}}) {
    const Tensor small = Tensor::zeros(dtype, {1});
    write_number(dtype, small.raw(), -1e9);
    CHECK(small.number(Shape{0}) == -largest);
    write_number(dtype, small.raw(), std::numeric_limits<double>::infinity());
    CHECK(small.number(Shape{0}) == largest);
    write_number(dtype, small.raw(), std::nan(""));
    CHECK(std::isnan(small.number(Shape{0})));
  }
}

TEST_CASE("the ABI's view of a tensor") {
  const Tensor tensor = Tensor::empty_padded(DType::bf16, {2, 3}, 5);
  const quire_tensor view = tensor.view();
  CHECK(view.struct_size == sizeof(quire_tensor));
  CHECK(view.data == tensor.raw());
  CHECK(view.rank == 2);
  CHECK(view.dtype == QUIRE_BF16);
  CHECK(view.shape[1] == 3);
  CHECK(view.strides[0] == 5);
  CHECK(view.strides[1] == 1);
  CHECK(view.device.type == QUIRE_DEVICE_CPU);
}
