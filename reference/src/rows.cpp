// Rows: copies bit for bit, and the conversions to and from float64 (numerics: widened exactly, rounded once).
#include "rows.h"

#include <quire/convert.h>
#include <quire/tensor.h>

#include <cstring>
#include <limits>
#include <span>

namespace quire::reference {

RowView::RowView(const quire_tensor* tensor) : tensor_(tensor) {
  if (tensor == nullptr) return;
  data_ = static_cast<std::byte*>(tensor->data);
  element_ = size_of(static_cast<DType>(tensor->dtype));
}

bool RowView::dense_from(int axis) const {
  std::int64_t step = 1;
  for (int a = tensor_->rank - 1; a >= axis; --a) {
    if (tensor_->shape[a] != 1 && tensor_->strides[a] != step) return false;
    step *= tensor_->shape[a];
  }
  return true;
}

std::int64_t RowView::bytes_from(int axis) const {
  std::int64_t bytes = element_;
  for (int a = axis; a < tensor_->rank; ++a) bytes *= tensor_->shape[a];
  return bytes;
}

void RowView::copy_row(int axis, const std::byte* from, const RowView& source, int source_axis, std::byte* to) const {
  if (bytes_from(axis) == 0) return;
  if (dense_from(axis) && source.dense_from(source_axis)) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes_from(axis)));
    return;
  }
  for (std::int64_t i = 0; i < size(axis); ++i) {
    copy_row(axis + 1, from + i * source.step(source_axis), source, source_axis + 1, to + i * step(axis));
  }
}

void RowView::clear_row(int axis, std::byte* row) const {
  if (bytes_from(axis) == 0) return;
  if (dense_from(axis)) {
    std::memset(row, 0, static_cast<std::size_t>(bytes_from(axis)));
    return;
  }
  for (std::int64_t i = 0; i < size(axis); ++i) clear_row(axis + 1, row + i * step(axis));
}

namespace {

template <typename Pattern>
std::span<const Pattern> patterns(const std::byte* from, std::int64_t n) {
  return {reinterpret_cast<const Pattern*>(from), static_cast<std::size_t>(n)};
}
template <typename Pattern>
std::span<Pattern> patterns(std::byte* to, std::int64_t n) {
  return {reinterpret_cast<Pattern*>(to), static_cast<std::size_t>(n)};
}

}  // namespace

void widen(DType dtype, const std::byte* from, double* to, std::int64_t n) {
  const std::span<double> out(to, static_cast<std::size_t>(n));
  switch (dtype) {
    case DType::f16: return from_f16(patterns<std::uint16_t>(from, n), out);
    case DType::bf16: return from_bf16(patterns<std::uint16_t>(from, n), out);
    case DType::f32: return from_f32(patterns<float>(from, n), out);
    case DType::f8_e4m3fn: return from_f8_e4m3fn(patterns<std::uint8_t>(from, n), out);
    case DType::f8_e5m2: return from_f8_e5m2(patterns<std::uint8_t>(from, n), out);
    default: std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(double));
  }
}

void narrow(DType dtype, const double* from, std::byte* to, std::int64_t n) {
  constexpr std::int64_t most = 256;
  double canonical[most];
  const std::int64_t element = size_of(dtype);
  for (std::int64_t begin = 0; begin < n; begin += most) {
    const std::int64_t count = n - begin < most ? n - begin : most;
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = from[begin + i];
      canonical[i] = x == x ? x : std::numeric_limits<double>::quiet_NaN();
    }
    const std::span<const double> in(canonical, static_cast<std::size_t>(count));
    std::byte* out = to + begin * element;
    switch (dtype) {
      case DType::f16: to_f16(in, patterns<std::uint16_t>(out, count)); break;
      case DType::bf16: to_bf16(in, patterns<std::uint16_t>(out, count)); break;
      case DType::f32: to_f32(in, patterns<float>(out, count)); break;
      case DType::f8_e4m3fn: to_f8_e4m3fn(in, patterns<std::uint8_t>(out, count)); break;
      case DType::f8_e5m2: to_f8_e5m2(in, patterns<std::uint8_t>(out, count)); break;
      default: std::memcpy(out, canonical, static_cast<std::size_t>(count) * sizeof(double));
    }
  }
}

double widen(DType dtype, const std::byte* from) {
  double value = 0;
  widen(dtype, from, &value, 1);
  return value;
}

void narrow(DType dtype, double from, std::byte* to) { narrow(dtype, &from, to, 1); }

}  // namespace quire::reference
