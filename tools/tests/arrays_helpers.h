// What the tests of array files share: bytes from text, tensors of every dtype, expected errors.
#pragma once

#include "arrays/bytes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace quire::arrays::testing {

using Buffer = std::vector<std::byte>;

inline constexpr std::array<DType, QUIRE_DTYPE_COUNT> all_dtypes = {
    DType::boolean, DType::i8,   DType::u8,  DType::i16, DType::i32,       DType::i64,
    DType::f16,     DType::bf16, DType::f32, DType::f64, DType::f8_e4m3fn, DType::f8_e5m2};

inline int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/// Bytes written as in arrays_samples.h.
inline Buffer from_hex(std::string_view text) {
  Buffer bytes;
  while (!text.empty()) {
    const auto value = static_cast<std::byte>(digit(text[0]) * 16 + digit(text[1]));
    text.remove_prefix(2);
    std::size_t count = 1;
    if (text.starts_with('*')) {
      const std::size_t comma = text.find(',');
      std::from_chars(text.data() + 1, text.data() + comma, count);
      text.remove_prefix(comma + 1);
    }
    bytes.insert(bytes.end(), count, value);
  }
  return bytes;
}

inline Buffer from_text(std::string_view text) {
  Buffer bytes;
  append_text(bytes, text);
  return bytes;
}

/// An .npy file of version 1.0 with this header, without padding.
inline Buffer npy_of(std::string_view header, std::string_view data) {
  Buffer bytes = from_text("\x93NUMPY\x01");
  bytes.push_back(std::byte{0});
  append_number(bytes, static_cast<std::uint16_t>(header.size()));
  append_text(bytes, header);
  append_text(bytes, data);
  return bytes;
}

inline Buffer safetensors_of(std::string_view header, std::string_view data) {
  Buffer bytes;
  append_number(bytes, static_cast<std::uint64_t>(header.size()));
  append_text(bytes, header);
  append_text(bytes, data);
  return bytes;
}

/// A tensor whose bytes count up from `first` (0 and 1 alternate in bools).
inline Tensor counting(DType dtype, Shape shape, int first = 1) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  const std::size_t size = bytes_of(tensor).size();
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t value = static_cast<std::size_t>(first) + i * 7;
    tensor.raw()[i] = static_cast<std::byte>(dtype == DType::boolean ? value % 2 : value % 256);
  }
  return tensor;
}

inline bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.is_dense() && b.is_dense() &&
         std::ranges::equal(bytes_of(a), bytes_of(b));
}

inline std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> values;
  const std::int64_t size = size_of(tensor.dtype());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(read_number(tensor.dtype(), tensor.raw() + i * size));
  }
  return values;
}

/// Runs `action`, which must raise invalid_argument naming `argument` in one line with `part` in
/// it.
template <typename Action>
void raises(std::string_view argument, std::string_view part, Action action) {
  CAPTURE(part);
  try {
    action();
    FAIL("nothing raised");
  } catch (const Error& error) {
    const std::string_view message = error.what();
    CAPTURE(message);
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.argument() == argument);
    CHECK(message.starts_with(std::string(argument) + ": "));
    CHECK(message.find(part) != std::string_view::npos);
    CHECK(message.find("; allowed: ") != std::string_view::npos);
    CHECK(message.find('\n') == std::string_view::npos);
  }
}

}  // namespace quire::arrays::testing
