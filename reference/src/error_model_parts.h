// What a contract's arithmetic does to a product and to a sum: the parts that the error models are made of.
#pragma once

#include <quire/backend.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace quire::reference {

/// Variances of a contract's relative errors, and the smallest steps of its number formats.
struct Roundoff {
  explicit Roundoff(const quire_contract& contract)
      : accumulate(contract.u_accumulate * contract.u_accumulate),
        operand(contract.u_product * contract.u_product),
        product(2 * operand + accumulate),
        store(contract.u_store * contract.u_store),
        exp(contract.u_exp * contract.u_exp),
        root(contract.u_accumulate),
        store_root(contract.u_store),
        exp_root(contract.u_exp),
        is_float32(contract.u_accumulate >= 0x1p-24),
        smallest(is_float32 ? std::fmax(0x1p-149, std::fmax(contract.u_product, contract.u_store) * 0x1p-126) : 0x1p-1074),
        smallest_exp(is_float32 ? 0x1p-126 : 0),
        smallest_operand(contract.u_product >= 0x1p-11 ? 0x1p-25 : 0),
        smallest_store(contract.u_store >= 0x1p-11 ? 0x1p-25 : 0),
        most(is_float32 ? 0x1p127 : std::numeric_limits<double>::infinity()) {}

  double accumulate;  ///< of one addition or elementwise operation
  double operand;     ///< of one operand's rounding before a product
  double product;     ///< of a product: its two operands, and its own rounding
  double store;       ///< of storing an intermediate
  double exp;         ///< of exp and its kin
  double root, store_root, exp_root;
  bool is_float32;          ///< float32 or narrower: results below its normal range lose bits, those above 2^128 overflow
  double smallest;          ///< what float32's denormals lose, or those of a narrower type of its range (bf16, tf32)
  double smallest_exp;      ///< below it an honest exp may answer zero
  double smallest_operand;  ///< half of the spacing of half's denormals: what an operand rounded to half may lose
  double smallest_store;    ///< likewise, what an intermediate stored in half may lose
  double most;              ///< magnitudes from here on may overflow

  /// Variance of a sum of n terms x whose sum is `total`, added one after another in an unknown order. The i-th partial sum of a random
  /// order has mean square (i/n)^2 total^2 + (i/n)(1 - i/n) sum x^2, and each is rounded once: n (total^2 / 3 + sum x^2 / 6).
  double sum(double n, double total_squared, double squares) const { return accumulate * n * (total_squared / 3 + squares / 6); }
};

inline std::vector<double> zeros(std::int64_t n) { return std::vector<double>(static_cast<std::size_t>(n)); }

/// What is published of an element: deviations only where the center is finite, infinity where the model's own numbers overflowed.
inline double published(double center, double deviation) {
  if (!std::isfinite(center)) return 0;
  return deviation == deviation ? deviation : std::numeric_limits<double>::infinity();
}

}  // namespace quire::reference
