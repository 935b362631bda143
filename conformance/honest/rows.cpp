// Rows: addresses, copies and conversions (C1, E5).
#include "rows.h"

#include <quire/convert.h>

#include <cmath>
#include <cstring>

namespace quire::conformance::honest {

Rows::Rows(const quire_tensor* tensor, const Setting& setting) : tensor_(tensor), fault_(setting.fault) {
  if (tensor == nullptr) return;
  data_ = static_cast<std::byte*>(tensor->data);
  element_ = size_of(static_cast<DType>(tensor->dtype));
}

std::byte* Rows::address(std::int64_t offset) const {
  constexpr std::int64_t low_bits = 0x7fffffff;
  if (fault_ == Fault::offsets_of_32_bits) offset &= low_bits;
  if (fault_ == Fault::byte_offsets_of_32_bits) return data_ + ((offset * element_) & low_bits);
  return data_ + offset * element_;
}

std::int64_t Rows::extent(int axis) const {
  std::int64_t last = 0;
  for (int a = axis; a < rank(); ++a) {
    if (size(a) == 0) return 0;
    last += (size(a) - 1) * stride(a);
  }
  return last + 1;
}

namespace {

void copy_elements(const std::byte* from, std::byte* to, std::int64_t n, DType dtype, const Setting& setting) {
  std::int64_t bytes = n * size_of(dtype);
  if (setting.is(Fault::tails_of_16_bytes_lost) && bytes >= 16) bytes -= bytes % 16;
  if (setting.is(Fault::float64_through_float32) && dtype == DType::f64) {
    for (std::int64_t i = 0; i < n; ++i) {
      double x;
      std::memcpy(&x, from + i * 8, 8);
      x = static_cast<double>(static_cast<float>(x));
      std::memcpy(to + i * 8, &x, 8);
    }
    return;
  }
  if (setting.is(Fault::negative_zero_lost) && dtype == DType::f32) {
    for (std::int64_t i = 0; i < n; ++i) {
      float x;
      std::memcpy(&x, from + i * 4, 4);
      x = x + 0.0F;
      std::memcpy(to + i * 4, &x, 4);
    }
    return;
  }
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void copy_row(const Rows& source, int source_axis, const std::byte* from, const Rows& to, int axis, std::byte* place,
              const Setting& setting) {
  if (axis >= to.rank()) return copy_elements(from, place, 1, to.dtype(), setting);
  if (axis + 1 == to.rank()) return copy_elements(from, place, to.size(axis), to.dtype(), setting);  // the innermost axis is dense
  for (std::int64_t i = 0; i < to.size(axis); ++i) {
    copy_row(source, source_axis + 1, from + i * source.stride(source_axis) * source.element_bytes(), to, axis + 1,
             place + i * to.stride(axis) * to.element_bytes(), setting);
  }
}

void clear_row(const Rows& to, int axis, std::byte* place) {
  if (axis + 1 >= to.rank()) {
    const std::int64_t n = axis < to.rank() ? to.size(axis) : 1;
    if (n > 0) std::memset(place, 0, static_cast<std::size_t>(n * to.element_bytes()));
    return;
  }
  for (std::int64_t i = 0; i < to.size(axis); ++i) clear_row(to, axis + 1, place + i * to.stride(axis) * to.element_bytes());
}

namespace {

template <typename Pattern>
Pattern pattern_at(const std::byte* from, std::int64_t i) {
  Pattern pattern;
  std::memcpy(&pattern, from + i * static_cast<std::int64_t>(sizeof pattern), sizeof pattern);
  return pattern;
}

template <typename Pattern, typename Widen>
void read_patterns(const std::byte* from, float* to, std::int64_t n, const Widen& widen) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(widen(pattern_at<Pattern>(from, i)));
}

// The pattern for x by another rule than to nearest even. Patterns without their sign are in the order of the magnitudes.
template <typename Format>
std::uint64_t odd_pattern(float x, Rounding rounding) {
  using detail::narrow;
  using detail::widen;
  const double exact = x;
  std::uint64_t pattern = narrow<Format>(exact);
  if (std::isnan(x) || std::isinf(x)) {
    const bool breaks = rounding == Rounding::fp8_overflows && std::isinf(x) && Format::overflow == Format::largest;
    return breaks ? (Format::has_infinity ? Format::infinity : Format::nan) : pattern;
  }
  const std::uint64_t magnitude = pattern & (Format::one_past - 1);
  const double size = std::fabs(exact);
  const auto value = [](std::uint64_t p) { return p > Format::largest ? HUGE_VAL : widen<Format>(p); };
  if (rounding == Rounding::toward_zero && magnitude > 0 && value(magnitude) > size) --pattern;
  if (rounding == Rounding::ties_away && magnitude < Format::largest && value(magnitude) < size &&
      size - value(magnitude) == value(magnitude + 1) - size) {
    ++pattern;
  }
  if (rounding == Rounding::fp8_overflows && Format::overflow == Format::largest && magnitude == Format::largest) {
    // The first magnitude that would round past the largest.
    const double step = value(Format::largest) - value(Format::largest - 1);
    if (size >= value(Format::largest) + step / 2) {
      pattern = (pattern & Format::one_past) | (Format::has_infinity ? Format::infinity : Format::nan);
    }
  }
  return pattern;
}

template <typename Format, typename Pattern>
void write_patterns(const float* from, std::byte* to, std::int64_t n, Rounding rounding) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t full = rounding == Rounding::nearest ? detail::narrow<Format>(from[i]) : odd_pattern<Format>(from[i], rounding);
    const auto pattern = static_cast<Pattern>(full);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof pattern), &pattern, sizeof pattern);
  }
}

}  // namespace

void read(DType dtype, const std::byte* from, float* to, std::int64_t n) {
  switch (dtype) {
    case DType::f16: return read_patterns<std::uint16_t>(from, to, n, [](std::uint16_t p) { return from_f16(p); });
    case DType::bf16: return read_patterns<std::uint16_t>(from, to, n, [](std::uint16_t p) { return from_bf16(p); });
    case DType::f8_e4m3fn: return read_patterns<std::uint8_t>(from, to, n, [](std::uint8_t p) { return from_f8_e4m3fn(p); });
    case DType::f8_e5m2: return read_patterns<std::uint8_t>(from, to, n, [](std::uint8_t p) { return from_f8_e5m2(p); });
    case DType::f64: return read_patterns<double>(from, to, n, [](double x) { return x; });
    default:
      if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
  }
}

float read(DType dtype, const std::byte* from) {
  float value = 0;
  read(dtype, from, &value, 1);
  return value;
}

void write(DType dtype, const float* from, std::byte* to, std::int64_t n, Rounding rounding) {
  switch (dtype) {
    case DType::f16: return write_patterns<detail::F16, std::uint16_t>(from, to, n, rounding);
    case DType::bf16: return write_patterns<detail::Bf16, std::uint16_t>(from, to, n, rounding);
    case DType::f8_e4m3fn: return write_patterns<detail::F8E4m3fn, std::uint8_t>(from, to, n, rounding);
    case DType::f8_e5m2: return write_patterns<detail::F8E5m2, std::uint8_t>(from, to, n, rounding);
    case DType::f64:
      for (std::int64_t i = 0; i < n; ++i) {
        const double wide = from[i];
        std::memcpy(to + i * 8, &wide, 8);
      }
      return;
    default:
      if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
  }
}

float rounded_to(DType dtype, float x) {
  std::byte stored[8];
  write(dtype, &x, stored, 1);
  return read(dtype, stored);
}

}  // namespace quire::conformance::honest
