// Rows of tensors: their addresses, widening to float64, and the one rounding on the way back.
#pragma once

#include <quire/dtype.h>
#include <quire/index_view.h>

#include <cstddef>
#include <cstdint>

namespace quire::reference {

/// Addresses in a tensor of any strides. Offsets are formed in 64 bits.
class RowView {
 public:
  RowView() = default;
  explicit RowView(const quire_tensor* tensor);

  bool defined() const { return tensor_ != nullptr; }
  DType dtype() const { return static_cast<DType>(tensor_->dtype); }
  std::int64_t size(int axis) const { return tensor_->shape[axis]; }
  /// The address of the row at leading indices (i), (i, j) or (i, j, k).
  std::byte* at(std::int64_t i) const { return data_ + i * step(0); }
  std::byte* at(std::int64_t i, std::int64_t j) const { return at(i) + j * step(1); }
  std::byte* at(std::int64_t i, std::int64_t j, std::int64_t k) const { return at(i, j) + k * step(2); }
  /// Copies the axes from `axis` on between tensors of one dtype and equal sizes there.
  void copy_row(int axis, const std::byte* from, const RowView& source, int source_axis, std::byte* to) const;
  /// Sets the axes from `axis` on to zero bits.
  void clear_row(int axis, std::byte* row) const;

 private:
  std::int64_t step(int axis) const { return tensor_->strides[axis] * element_; }
  bool dense_from(int axis) const;
  std::int64_t bytes_from(int axis) const;

  const quire_tensor* tensor_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t element_ = 1;
};

/// n contiguous elements, widened exactly.
void widen(DType dtype, const std::byte* from, double* to, std::int64_t n);
/// n elements, rounded once to nearest even (E5 for fp8). A NaN becomes the one positive quiet NaN, so that its bits do not depend on
/// the machine.
void narrow(DType dtype, const double* from, std::byte* to, std::int64_t n);
/// The same for one element.
double widen(DType dtype, const std::byte* from);
void narrow(DType dtype, double from, std::byte* to);

}  // namespace quire::reference
