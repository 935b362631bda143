// The loops over float64 that define results, one set per instruction set; the bits do not depend on which is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quire::reference {

/// Columns of values that the recurrence carries side by side.
inline constexpr std::int64_t rule_width = 16;

/// One token's step of the gated delta rule for `rule_width` rows v of a state, held as state[k * rule_width + v].
struct RuleStep {
  double* state;
  const double* key;    ///< [K]
  const double* query;  ///< [K]
  const double* value;  ///< [rule_width]
  double* output;       ///< [rule_width]
  std::int64_t key_size;
  double decay, beta, scale;
};

/// Sums run along one fixed order, element by element; the lanes of a vector are independent results.
struct Kernels {
  const char* name;
  /// scores[c] = sum over d, ascending, of query[d] * keys[d * stride + c].
  void (*scores)(const double* keys, std::int64_t stride, const double* query, std::int64_t size, double* scores, std::int64_t columns);
  /// x[i] = softcap * tanh(x[i] / softcap)   (D4)
  void (*softcap)(double* x, double softcap, std::int64_t n);
  /// x[i] = exp(x[i] - greatest)
  void (*weights)(double* x, double greatest, std::int64_t n);
  /// sum[i] += weights[c] * values[c * stride + i], the columns c ascending.
  void (*accumulate)(double* sum, const double* weights, const double* values, std::int64_t stride, std::int64_t columns, std::int64_t size);
  /// to[d * to_stride + c] = from[c * from_stride + d]
  void (*turn)(const double* from, std::int64_t from_stride, std::int64_t rows, std::int64_t size, double* to, std::int64_t to_stride);
  /// E: S <- g S; r = beta (v - S k); S <- S + r k^T; o = scale S q
  void (*rule)(const RuleStep& step);
};

/// The instruction sets of this build that the processor has, narrowest first: "scalar", then "sse2", "avx2", "avx512" or "neon".
const std::vector<const Kernels*>& available_kernels();

/// The widest, or the one that QUIRE_ISA names. Raises invalid_argument (QUIRE_ISA) with the names when it is none of them.
const Kernels& kernels();

}  // namespace quire::reference
