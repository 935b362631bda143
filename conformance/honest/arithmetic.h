// Float32 arithmetic in the orders that kernels use: forwards or backwards, fused or not.
#pragma once

#include "rows.h"

#include <bit>
#include <cmath>

namespace quire::conformance::honest {

class Arithmetic {
 public:
  /// What a product's operands are rounded to before it: nothing in an honest backend.
  enum class Operands { whole, tf32, bf16, half };

  explicit Arithmetic(const HonestOptions& options, Operands operands = Operands::whole, bool sums_in_half = false)
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
  float operand(float x) const {
    switch (operands_) {
      case Operands::whole: return x;
      case Operands::bf16: return rounded_to(DType::bf16, x);
      case Operands::half: return rounded_to(DType::f16, x);
      default: break;
    }
    // tf32: ten bits of mantissa, to nearest even.
    if (!std::isfinite(x)) return x;
    std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    bits += 0xfff + ((bits >> 13) & 1);
    return std::bit_cast<float>(bits & ~std::uint32_t{0x1fff});
  }

  bool fma_, reversed_;
  Operands operands_;
  bool sums_in_half_;
};

}  // namespace quire::conformance::honest
