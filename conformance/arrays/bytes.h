// Bytes of array files: little-endian numbers, sizes that are checked, and text for messages.
#pragma once

#include <quire/tensor.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::arrays {

// Every number in these files is little-endian and is copied as it stands.
static_assert(std::endian::native == std::endian::little,
              "array files need a little-endian machine");

using Bytes = std::span<const std::byte>;

/// The most axes that an array in a file may have, as in NumPy.
inline constexpr std::size_t max_rank = 64;

/// The number at `offset`, which the caller has found to lie inside.
template <typename T>
T number_at(Bytes bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void append_number(std::vector<std::byte>& bytes, T value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

inline void append_bytes(std::vector<std::byte>& bytes, Bytes more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

inline void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  append_bytes(bytes, std::as_bytes(std::span(text)));
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Text from a file as one short quoted line of valid UTF-8.
std::string shown(std::string_view text);

/// `names` quoted and joined, the first 20 of them.
std::string listed(std::span<const std::string> names);

/// Raises invalid_argument (`file`) unless the shape fits what tensors compute with: at most
/// `max_rank` axes, none negative, and the product of those that are not 0 times the element's size
/// below 2^63. Returns the bytes of a dense tensor.
std::uint64_t dense_bytes(DType dtype, std::span<const std::int64_t> shape);

/// Raises invalid_argument (`file`) where a byte of a bool tensor is neither 0 nor 1.
void require_bools(const Tensor& tensor);

/// A new dense tensor with these bytes, whose number the caller has found to be right.
Tensor copy_dense(DType dtype, const Shape& shape, Bytes data);

/// The tensor's elements in row-major order: itself where it is dense, else a copy. Raises
/// invalid_argument (`file`) for no tensor and for one that lies on a device.
Tensor host_dense(const Tensor& tensor);

/// The bytes of a dense host tensor.
Bytes bytes_of(const Tensor& dense);

/// An empty vector with room for `size` bytes. Raises unavailable (`file`) where there is no
/// memory.
std::vector<std::byte> with_capacity(std::uint64_t size);

}  // namespace quire::arrays
