// Conversions between float64 and the bit patterns of the smaller floating types.
//
// Narrowing rounds once, to nearest even, from the float64 bits themselves: a way through float32
// would round twice. Widening is exact. Both work on the bits, with one addition each for
// subnormals, and are written with selects so that loops over them vectorise. They expect the
// default rounding mode.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

namespace quire {

static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<float>::is_iec559);

namespace detail {

/// A binary floating type of sign, exponent and mantissa fields, with subnormals. `largest` is the
/// pattern of the largest finite magnitude, `overflow` the one that every larger magnitude rounds
/// to (infinity, or `largest` where the type saturates), `nan` a quiet NaN, all without sign.
/// Magnitudes from `first_nan` on are NaN; where `has_infinity`, the pattern before it is infinity.
template <int ExponentBits, int MantissaBits, int Bias, bool HasInfinity, bool Saturates>
struct FloatFormat {
  static constexpr int exponent_bits = ExponentBits;
  static constexpr int mantissa_bits = MantissaBits;
  static constexpr int bias = Bias;
  static constexpr bool has_infinity = HasInfinity;
  static constexpr int magnitude_bits = exponent_bits + mantissa_bits;
  static constexpr std::uint64_t one_past = std::uint64_t{1} << magnitude_bits;
  static constexpr std::uint64_t infinity = one_past - (std::uint64_t{1} << mantissa_bits);
  static constexpr std::uint64_t first_nan = has_infinity ? infinity + 1 : one_past - 1;
  static constexpr std::uint64_t largest = has_infinity ? infinity - 1 : one_past - 2;
  static constexpr std::uint64_t overflow = has_infinity && !Saturates ? infinity : largest;
  static constexpr std::uint64_t nan =
      has_infinity ? infinity + (std::uint64_t{1} << (mantissa_bits - 1)) : one_past - 1;
};

using F16 = FloatFormat<5, 10, 15, true, false>;
using Bf16 = FloatFormat<8, 7, 127, true, false>;
using F8E4m3fn = FloatFormat<4, 3, 7, false, true>;  // one NaN per sign; saturates (E5)
using F8E5m2 = FloatFormat<5, 2, 15, true, true>;  // infinity can be read, is never stored (E5)

static_assert(F8E4m3fn::largest == 0x7e && F8E4m3fn::nan == 0x7f);
static_assert(F8E5m2::largest == 0x7b && F8E5m2::nan == 0x7e);

/// The pattern in Format nearest to x, ties to even.
template <typename Format>
constexpr std::uint64_t narrow(double x) {
  constexpr int drop = 52 - Format::mantissa_bits;
  // The exponent field, in float64, of the smallest normal of Format.
  constexpr std::uint64_t smallest_normal = 1023 + 1 - Format::bias;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffff;
  const std::uint64_t sign = (bits >> 63) << Format::magnitude_bits;

  // Normal results: round off the low bits (a carry into the exponent is right as it is), then
  // change the bias.
  const std::uint64_t odd = (magnitude >> drop) & 1;
  const std::uint64_t rounded = (magnitude + ((std::uint64_t{1} << (drop - 1)) - 1) + odd) >> drop;
  const std::uint64_t normal = rounded - ((smallest_normal - 1) << Format::mantissa_bits);

  // Below them the spacing stays. The ulp of `align` is that spacing, so adding it rounds there,
  // once, and the result's low bits count the multiples: the pattern. (A variable shift would do
  // too, but GCC vectorises no loop over it.)
  constexpr std::uint64_t align = (smallest_normal + drop) << 52;
  const double aligned = std::bit_cast<double>(magnitude) + std::bit_cast<double>(align);
  const std::uint64_t subnormal = std::bit_cast<std::uint64_t>(aligned) - align;

  const std::uint64_t field = magnitude < (smallest_normal << 52) ? subnormal : normal;
  const std::uint64_t finite = field > Format::largest ? Format::overflow : field;
  return (magnitude > 0x7ff0000000000000 ? Format::nan : finite) | sign;
}

/// The value of a pattern of Format; a NaN becomes the quiet NaN of its sign.
template <typename Format>
constexpr double widen(std::uint64_t pattern) {
  const std::uint64_t magnitude = pattern & (Format::one_past - 1);
  const std::uint64_t sign = (pattern >> Format::magnitude_bits) << 63;
  const bool subnormal = magnitude < (std::uint64_t{1} << Format::mantissa_bits);

  const std::uint64_t normal = (magnitude << (52 - Format::mantissa_bits)) +
                               (static_cast<std::uint64_t>(1023 - Format::bias) << 52);
  // A subnormal is the normal of the same mantissa one exponent higher, less its leading bit:
  // exact.
  const std::uint64_t unit = static_cast<std::uint64_t>(1023 + 1 - Format::bias) << 52;
  const std::uint64_t with_lead = unit + (magnitude << (52 - Format::mantissa_bits));
  const double without_lead = std::bit_cast<double>(subnormal ? with_lead : unit) -
                              std::bit_cast<double>(unit);
  const std::uint64_t small = std::bit_cast<std::uint64_t>(without_lead) & 0x7fffffffffffffff;
  const std::uint64_t finite = subnormal ? small : normal;
  const std::uint64_t number = Format::has_infinity && magnitude == Format::infinity
                                   ? std::uint64_t{0x7ff0000000000000}
                                   : finite;
  return std::bit_cast<double>(
      (magnitude >= Format::first_nan ? std::uint64_t{0x7ff8000000000000} : number) | sign);
}

}  // namespace detail

/// The nearest value of the type, ties to even; NaN stays NaN (quiet, its sign kept) and zeros keep
/// their sign. Magnitudes that round past the largest finite value become infinity in the wider
/// types and the largest finite value in fp8 (448, 57344), where an infinity does too (E5).
constexpr std::uint16_t to_f16(double x) {
  return static_cast<std::uint16_t>(detail::narrow<detail::F16>(x));
}
constexpr std::uint16_t to_bf16(double x) {
  return static_cast<std::uint16_t>(detail::narrow<detail::Bf16>(x));
}
constexpr std::uint8_t to_f8_e4m3fn(double x) {
  return static_cast<std::uint8_t>(detail::narrow<detail::F8E4m3fn>(x));
}
constexpr std::uint8_t to_f8_e5m2(double x) {
  return static_cast<std::uint8_t>(detail::narrow<detail::F8E5m2>(x));
}
/// The language's own conversion: one rounding to nearest even in the default rounding mode.
constexpr float to_f32(double x) { return static_cast<float>(x); }

/// The exact value of a bit pattern; a NaN becomes the quiet NaN of its sign.
constexpr double from_f16(std::uint16_t pattern) { return detail::widen<detail::F16>(pattern); }
constexpr double from_bf16(std::uint16_t pattern) { return detail::widen<detail::Bf16>(pattern); }
constexpr double from_f8_e4m3fn(std::uint8_t pattern) {
  return detail::widen<detail::F8E4m3fn>(pattern);
}
constexpr double from_f8_e5m2(std::uint8_t pattern) {
  return detail::widen<detail::F8E5m2>(pattern);
}
constexpr double from_f32(float x) { return static_cast<double>(x); }

/// The same, element by element; `to` holds at least as many elements as `from`, and they do not
/// overlap.
void to_f16(std::span<const double> from, std::span<std::uint16_t> to);
void to_bf16(std::span<const double> from, std::span<std::uint16_t> to);
void to_f8_e4m3fn(std::span<const double> from, std::span<std::uint8_t> to);
void to_f8_e5m2(std::span<const double> from, std::span<std::uint8_t> to);
void to_f32(std::span<const double> from, std::span<float> to);
void from_f16(std::span<const std::uint16_t> from, std::span<double> to);
void from_bf16(std::span<const std::uint16_t> from, std::span<double> to);
void from_f8_e4m3fn(std::span<const std::uint8_t> from, std::span<double> to);
void from_f8_e5m2(std::span<const std::uint8_t> from, std::span<double> to);
void from_f32(std::span<const float> from, std::span<double> to);

}  // namespace quire
