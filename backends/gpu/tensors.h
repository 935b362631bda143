// Elements and rows of tensors in kernels. Every offset is 64-bit.
#pragma once

#include "numbers.h"
#include "parameters.h"

namespace quire::gpu {

QUIRE_DEVICE bool is_present(const TensorView& tensor) { return tensor.element_bytes != 0; }

QUIRE_DEVICE std::int64_t offset(const TensorView& tensor, std::int64_t i) { return i * tensor.strides[0]; }
QUIRE_DEVICE std::int64_t offset(const TensorView& tensor, std::int64_t i, std::int64_t j) {
  return offset(tensor, i) + j * tensor.strides[1];
}
QUIRE_DEVICE std::int64_t offset(const TensorView& tensor, std::int64_t i, std::int64_t j, std::int64_t k) {
  return offset(tensor, i, j) + k * tensor.strides[2];
}
QUIRE_DEVICE std::int64_t offset(const TensorView& tensor, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
  return offset(tensor, i, j, k) + l * tensor.strides[3];
}

/// The element at an offset: a float of any dtype, or an integer, i32 or i64.
QUIRE_DEVICE float number_at(const TensorView& tensor, std::int64_t at) { return load(tensor.dtype, tensor.data, at); }
QUIRE_DEVICE void put_number(const TensorView& tensor, std::int64_t at, float x) { store(tensor.dtype, tensor.data, at, x); }
QUIRE_DEVICE std::int64_t integer_at(const TensorView& tensor, std::int64_t at) {
  return tensor.dtype == QUIRE_I64 ? static_cast<const std::int64_t*>(tensor.data)[at] : static_cast<const std::int32_t*>(tensor.data)[at];
}
QUIRE_DEVICE bool flag_at(const TensorView& tensor, std::int64_t at) { return static_cast<const std::uint8_t*>(tensor.data)[at] != 0; }

/// Whether a pool has that row or slot (A2, E6).
QUIRE_DEVICE bool has_row(const TensorView& pool, std::int64_t row) { return is_present(pool) && row >= 0 && row < pool.sizes[0]; }

/// The address of the row at an offset.
QUIRE_DEVICE const unsigned char* row_at(const TensorView& tensor, std::int64_t at) {
  return static_cast<const unsigned char*>(tensor.data) + at * tensor.element_bytes;
}
QUIRE_DEVICE unsigned char* changed_row_at(const TensorView& tensor, std::int64_t at) {
  return static_cast<unsigned char*>(tensor.data) + at * tensor.element_bytes;
}

/// Where unit n of a row stands, in bytes from the row's begin.
QUIRE_DEVICE std::int64_t unit_offset(const RowShape& row, const std::int64_t* strides, std::int64_t n) {
  std::int64_t bytes = 0;
  for (int axis = row.axes - 1; axis > 0; --axis) {
    bytes += n % row.sizes[axis] * strides[axis];
    n /= row.sizes[axis];
  }
  return bytes + n * strides[0];
}

template <typename Unit>
QUIRE_DEVICE void copy_units(const RowShape& row, const unsigned char* from, unsigned char* to) {
  for (std::int64_t n = thread(); n < row.units; n += threads()) {
    const Unit unit = *reinterpret_cast<const Unit*>(from + unit_offset(row, row.from_bytes, n));
    store_racing(reinterpret_cast<Unit*>(to + unit_offset(row, row.to_bytes, n)), unit);
  }
}

/// C1: a row bit for bit, by the whole block. Rows that another block stores to may race (C4): units hold whole elements.
QUIRE_DEVICE void copy_row(const RowShape& row, const unsigned char* from, unsigned char* to) {
  switch (row.unit_bytes) {
    case 8: return copy_units<std::uint64_t>(row, from, to);
    case 4: return copy_units<std::uint32_t>(row, from, to);
    case 2: return copy_units<std::uint16_t>(row, from, to);
    default: return copy_units<std::uint8_t>(row, from, to);
  }
}

/// Zero bits in a row of the shape's target, by the whole block.
QUIRE_DEVICE void clear_row(const RowShape& row, unsigned char* to) {
  for (std::int64_t n = thread(); n < row.units; n += threads()) {
    unsigned char* unit = to + unit_offset(row, row.to_bytes, n);
    for (int byte = 0; byte < row.unit_bytes; ++byte) unit[byte] = 0;
  }
}

}  // namespace quire::gpu
