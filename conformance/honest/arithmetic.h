// Float32 arithmetic in the orders that kernels use: forwards or backwards, fused or not, its operands whole or rounded.
#pragma once

#include "rows.h"

#include <bit>
#include <cmath>

namespace quire::conformance::honest {

using Format = HonestOptions::Format;

/// x to so many significant bits, to nearest even, whatever its exponent.
inline float rounded_to_bits(int bits, float x) {
  if (!std::isfinite(x)) return x;
  const int drop = 24 - bits;
  std::uint32_t pattern = std::bit_cast<std::uint32_t>(x);
  pattern += (std::uint32_t{1} << (drop - 1)) - 1 + ((pattern >> drop) & 1);
  return std::bit_cast<float>(pattern >> drop << drop);
}

/// x as a number of the format.
inline float rounded_to(Format format, float x) {
  constexpr float largest_half = 65504;
  switch (format) {
    case Format::tf32: return rounded_to_bits(11, x);
    case Format::bf16: return rounded_to_bits(8, x);
    case Format::half: return std::fabs(x) <= largest_half ? rounded_to(DType::f16, x) : rounded_to_bits(11, x);
    default: return x;
  }
}

class Arithmetic {
 public:
  explicit Arithmetic(const HonestOptions& options) : Arithmetic(options, options.products, false) {}
  /// Operands rounded to what the options do not say, and sums too: faults.
  Arithmetic(const HonestOptions& options, Format operands, bool sums_in_half)
      : fma_(options.fma), reversed_(options.reversed_sums), operands_(operands), sums_in_half_(sums_in_half) {}

  float add_product(float sum, float a, float b) const {
    a = operand(a);
    b = operand(b);
    const float result = fma_ ? std::fma(a, b, sum) : sum + a * b;
    return sums_in_half_ ? rounded_to(DType::f16, result) : result;
  }

  float dot(const float* a, const float* b, std::int64_t n) const {
    float sum = 0;
    if (reversed_) {
      for (std::int64_t i = n - 1; i >= 0; --i) sum = add_product(sum, a[i], b[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) sum = add_product(sum, a[i], b[i]);
    }
    return sum;
  }

  /// sum[i] += factor * x[i]
  void add_scaled(float* sum, float factor, const float* x, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) sum[i] = add_product(sum[i], factor, x[i]);
  }

  /// Calls body(i) for 0 <= i < n in the order in which sums run.
  template <typename Body>
  void in_order(std::int64_t n, const Body& body) const {
    for (std::int64_t i = 0; i < n; ++i) body(reversed_ ? n - 1 - i : i);
  }

 private:
  float operand(float x) const { return operands_ == Format::float32 ? x : rounded_to(operands_, x); }

  bool fma_, reversed_;
  Format operands_;
  bool sums_in_half_;
};

}  // namespace quire::conformance::honest
