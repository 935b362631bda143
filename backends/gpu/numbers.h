// Floating types as bit patterns: any dtype read as float32, and float32 rounded once, to nearest even, into any dtype (E5).
//
// Integers only, so that every toolchain and device gives the same bits; core/include/quire/convert.h is another way to the same patterns,
// and the tests hold the two against each other.
#pragma once

#include "dialect.h"

#include <quire/backend.h>

#include <cstdint>
#include <cstring>

namespace quire::gpu {

QUIRE_DEVICE std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
QUIRE_DEVICE float float_of(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
QUIRE_DEVICE float infinity() { return float_of(0x7f800000u); }
QUIRE_DEVICE bool is_infinite(float x) { return (bits_of(x) & 0x7fffffffu) == 0x7f800000u; }

/// A type of sign, exponent and mantissa fields with subnormals. `largest` is the pattern of the largest finite magnitude, `overflow` what
/// every larger one is stored as; magnitudes above `infinity`, or above `largest` where there is none, are NaN, stored as `nan`.
template <int MantissaBits, int Bias, std::uint32_t Largest, std::uint32_t Infinity, std::uint32_t Overflow, std::uint32_t Nan,
          std::uint32_t Sign>
struct Format {
  static constexpr int mantissa_bits = MantissaBits, bias = Bias;
  static constexpr std::uint32_t largest = Largest, infinity = Infinity, overflow = Overflow, nan = Nan, sign = Sign;
};
using F16 = Format<10, 15, 0x7bff, 0x7c00, 0x7c00, 0x7e00, 0x8000>;
using Bf16 = Format<7, 127, 0x7f7f, 0x7f80, 0x7f80, 0x7fc0, 0x8000>;
using F8E4m3fn = Format<3, 7, 0x7e, 0x7e, 0x7e, 0x7f, 0x80>;  // no infinity; saturates
using F8E5m2 = Format<2, 15, 0x7b, 0x7c, 0x7b, 0x7e, 0x80>;   // infinity can be read, is never stored

/// Exact.
template <typename Type>
QUIRE_DEVICE float widen(std::uint32_t pattern) {
  const std::uint32_t sign = (pattern & Type::sign) != 0 ? 0x80000000u : 0u;
  const std::uint32_t magnitude = pattern & (Type::sign - 1);
  if (magnitude > Type::infinity) return float_of(0x7fc00000u | sign);
  if (magnitude > Type::largest) return float_of(0x7f800000u | sign);
  constexpr int shift = 23 - Type::mantissa_bits;
  if (Type::bias == 127) return float_of(magnitude << shift | sign);  // float32's own exponents, subnormals too
  if (magnitude >> Type::mantissa_bits != 0)
    return float_of(((magnitude << shift) + (static_cast<std::uint32_t>(127 - Type::bias) << 23)) | sign);
  // A subnormal counts steps of the smallest one, which is a power of two.
  const float step = float_of(static_cast<std::uint32_t>(127 + 1 - Type::bias - Type::mantissa_bits) << 23);
  return float_of(bits_of(static_cast<float>(magnitude) * step) | sign);
}

/// x >> shift, rounded to nearest even.
QUIRE_DEVICE std::uint32_t shift_rounded(std::uint32_t x, int shift) {
  return (x + ((1u << (shift - 1)) - 1) + ((x >> shift) & 1u)) >> shift;
}

template <typename Type>
QUIRE_DEVICE std::uint32_t narrow(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t sign = (bits & 0x80000000u) != 0 ? Type::sign : 0u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return Type::nan | sign;
  constexpr int drop = 23 - Type::mantissa_bits;
  constexpr int smallest_normal = 127 + 1 - Type::bias;  // its exponent field in float32
  const int exponent = static_cast<int>(magnitude >> 23);
  std::uint32_t pattern = 0;
  if (exponent >= smallest_normal) {
    pattern = shift_rounded(magnitude, drop) - (static_cast<std::uint32_t>(smallest_normal - 1) << Type::mantissa_bits);
  } else {
    // Below, the spacing stays: the significand counts steps of the smallest subnormal once it is shifted there.
    const std::uint32_t significand = exponent == 0 ? magnitude : (magnitude & 0x7fffffu) | 0x800000u;
    const int shift = drop + smallest_normal - (exponent == 0 ? 1 : exponent);
    pattern = shift > 24 ? 0 : shift_rounded(significand, shift);  // past 24 it is under half a step
  }
  return (pattern > Type::largest ? Type::overflow : pattern) | sign;
}

/// Element i of an array of f16, bf16, f32, f64 (rounded to float32), f8_e4m3fn or f8_e5m2.
QUIRE_DEVICE float load(quire_dtype dtype, const void* from, std::int64_t i) {
  switch (dtype) {
    case QUIRE_F16: return widen<F16>(static_cast<const std::uint16_t*>(from)[i]);
    case QUIRE_BF16: return widen<Bf16>(static_cast<const std::uint16_t*>(from)[i]);
    case QUIRE_F64: return static_cast<float>(static_cast<const double*>(from)[i]);
    case QUIRE_F8_E4M3FN: return widen<F8E4m3fn>(static_cast<const std::uint8_t*>(from)[i]);
    case QUIRE_F8_E5M2: return widen<F8E5m2>(static_cast<const std::uint8_t*>(from)[i]);
    default: return static_cast<const float*>(from)[i];
  }
}

QUIRE_DEVICE void store(quire_dtype dtype, void* to, std::int64_t i, float x) {
  switch (dtype) {
    case QUIRE_F16: static_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(narrow<F16>(x)); break;
    case QUIRE_BF16: static_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(narrow<Bf16>(x)); break;
    case QUIRE_F64: static_cast<double*>(to)[i] = static_cast<double>(x); break;
    case QUIRE_F8_E4M3FN: static_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(narrow<F8E4m3fn>(x)); break;
    case QUIRE_F8_E5M2: static_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(narrow<F8E5m2>(x)); break;
    default: static_cast<float*>(to)[i] = x; break;
  }
}

}  // namespace quire::gpu
