// Rows of tensors for the honest backend: addresses, copies bit for bit, and float32 in and out.
#pragma once

#include <quire/dtype.h>

#include "fault.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::conformance::honest {

/// Addresses in a tensor of any strides; offsets are formed in 64 bits.
class Rows {
 public:
  Rows() = default;
  Rows(const quire_tensor* tensor, const Setting& setting);

  bool defined() const { return tensor_ != nullptr; }
  DType dtype() const { return static_cast<DType>(tensor_->dtype); }
  int rank() const { return tensor_->rank; }
  std::int64_t size(int axis) const { return tensor_->shape[axis]; }
  std::int64_t stride(int axis) const { return tensor_->strides[axis]; }
  std::int64_t element_bytes() const { return element_; }
  const quire_tensor& tensor() const { return *tensor_; }
  bool has_row(std::int64_t i) const { return defined() && i >= 0 && i < size(0); }

  std::byte* at(std::int64_t i) const { return address(i * stride(0)); }
  std::byte* at(std::int64_t i, std::int64_t j) const { return address(i * stride(0) + j * stride(1)); }
  std::byte* at(std::int64_t i, std::int64_t j, std::int64_t k) const { return address(i * stride(0) + j * stride(1) + k * stride(2)); }
  /// Elements from the first to one past the last, gaps included.
  std::int64_t extent(int axis = 0) const;
  /// The address one past the last element.
  const std::byte* end() const { return data_ + extent() * element_; }

 private:
  std::byte* address(std::int64_t offset) const;

  const quire_tensor* tensor_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t element_ = 1;
  Fault fault_ = Fault::none;
};

/// Copies the axes of `to` from `axis` on; `source` has equal sizes from `source_axis` on. (C1)
void copy_row(const Rows& source, int source_axis, const std::byte* from, const Rows& to, int axis, std::byte* place,
              const Setting& setting);
/// Sets the axes from `axis` on to zero bits.
void clear_row(const Rows& to, int axis, std::byte* place);

/// n contiguous elements as float32; float64 is rounded.
void read(DType dtype, const std::byte* from, float* to, std::int64_t n);
float read(DType dtype, const std::byte* from);
/// What a value becomes on its way into memory.
enum class Rounding { nearest, toward_zero, ties_away, fp8_overflows };
/// n elements rounded once, to nearest even (E5 for fp8) where nothing else is asked for.
void write(DType dtype, const float* from, std::byte* to, std::int64_t n, Rounding rounding = Rounding::nearest);

/// x as a value of the narrower type.
float rounded_to(DType dtype, float x);

}  // namespace quire::conformance::honest
