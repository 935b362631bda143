// The reference's own transcendental functions of float64: the same bits on every machine.
//
// libm's exp, log and tanh change bits with the CPU's features and between versions, so the values
// that define results come from here. Only + - * / on double, integer operations, std::bit_cast and
// comparisons are used, each of which IEEE 754 fixes to the bit; the translation unit must be
// compiled with -ffp-contract=off and without -ffast-math. A NaN result is always the one positive
// quiet NaN 0x7ff8000000000000, since payloads and signs of NaN are what machines differ in.
//
// The functions are branch-free (selects only), so that a loop over one vectorises (GCC: -O3
// -fno-trapping-math and -mavx2 or wider); lanes give the bits the scalar gives. The header may be
// compiled several times for several instruction sets: define QUIRE_MATH_ABI differently in each
// translation unit. All functions have internal linkage, so no linker can put one instruction set's
// copy in another's place.
//
// Measured largest errors (tests/math_test.cpp against MPFR), in units in the last place of the
// exact result:
//   exp 0.57   log 0.65   log1p 0.65   tanh 0.64   sigmoid 0.56   softplus 0.65
#pragma once

#include <bit>
#include <cfloat>
#include <cstdint>
#include <limits>

#if defined(__FAST_MATH__)
#error "the reference's functions are defined by IEEE 754 arithmetic: compile without -ffast-math"
#endif

#ifndef QUIRE_MATH_ABI
#define QUIRE_MATH_ABI generic
#endif

// Vectorisation of a caller's loop needs every step inlined.
#if defined(__GNUC__)
#define QUIRE_MATH_INLINE [[maybe_unused, gnu::always_inline]] static inline
#else
#define QUIRE_MATH_INLINE [[maybe_unused]] static inline
#endif

namespace quire::reference::math {
inline namespace QUIRE_MATH_ABI {

static_assert(FLT_EVAL_METHOD == 0, "double expressions must be evaluated in double");
static_assert(std::numeric_limits<double>::is_iec559);

namespace detail {

// ln 2 = ln2_high + ln2_low. The high part has 42 bits, so that its product with an exponent (11
// bits) is exact.
constexpr double ln2_high = 0x1.62e42fefa3800p-1;
constexpr double ln2_low = 0x1.ef35793c76730p-45;
constexpr double log2_e = 0x1.71547652b82fep+0;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::bit_cast<double>(std::uint64_t{0x7ff8000000000000});

// An unevaluated sum high + low with |low| well below |high|.
struct Pair {
  double high;
  double low;
};

QUIRE_MATH_INLINE double magnitude(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffff);
}

QUIRE_MATH_INLINE double with_sign_of(double x, double sign) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) |
                               (std::bit_cast<std::uint64_t>(sign) & 0x8000000000000000));
}

// x with its low 32 bits cleared: 21 significant bits, whose square is exact.
QUIRE_MATH_INLINE double leading_bits(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0xffffffff00000000);
}

// The exact sum of two numbers, the first the larger in magnitude (or zero).
QUIRE_MATH_INLINE Pair sum_ordered(double large, double small) {
  const double sum = large + small;
  return {sum, small - (sum - large)};
}

// The exact square / 2 (but for the rounding of its low part): the step where series for exp and
// log lose most.
QUIRE_MATH_INLINE Pair half_square(double x) {
  const double lead = leading_bits(x);
  return {0.5 * lead * lead, 0.5 * (x - lead) * (x + lead)};
}

// The exact product of two numbers by Dekker's method (Veltkamp's split into 26 bits each).
// Magnitudes below 2^900.
QUIRE_MATH_INLINE Pair product(double a, double b) {
  const double a_scaled = 134217729.0 * a;
  const double a_high = a_scaled - (a_scaled - a);
  const double a_low = a - a_high;
  const double b_scaled = 134217729.0 * b;
  const double b_high = b_scaled - (b_scaled - b);
  const double b_low = b - b_high;
  const double high = a * b;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// numerator / denominator, rounded to within a hair of half an ulp: one quotient and its residual.
QUIRE_MATH_INLINE double quotient(Pair numerator, Pair denominator) {
  const double first = numerator.high / denominator.high;
  const Pair back = product(first, denominator.high);
  const double residual =
      ((numerator.high - back.high) - back.low) + (numerator.low - first * denominator.low);
  return first + residual / denominator.high;
}

// e^x = 2^k (1 + reduced + tail), with k + 2048 in biased_k and |reduced| <= ln2 / 2.
struct ExpParts {
  double reduced;
  double tail;
  std::uint64_t biased_k;
};

// Cody-Waite reduction: k = round(x log2 e), x - k ln2 = r + c with c the rounding of r. Then
//   e^(r + c) - 1 - r = r^2/2 + r^3 (1/3! + r/4! + .. + r^11/14!) + c (1 + r)
// with r^2/2 carried exactly; the Taylor series, cut where its rest is below 2^-63. |x| <= 1000.
QUIRE_MATH_INLINE ExpParts exp_parts(double x) {
  // Adding 1.5 * 2^52 rounds to an integer (ties to even), which then stands in the low bits of the
  // sum.
  const double shifter = 0x1.8p+52;
  const double shifted = x * log2_e + shifter;
  const double k = shifted - shifter;
  const std::uint64_t biased_k =
      std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(shifter) + 2048;

  const double high = x - k * ln2_high;
  const double low = k * ln2_low;
  const double r = high - low;
  const double c = (high - r) - low;

  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double q0 = 0x1.5555555555555p-3 + r * 0x1.5555555555555p-5;    // 1/3!, 1/4!
  const double q1 = 0x1.1111111111111p-7 + r * 0x1.6c16c16c16c17p-10;   // 1/5!, 1/6!
  const double q2 = 0x1.a01a01a01a01ap-13 + r * 0x1.a01a01a01a01ap-16;  // 1/7!, 1/8!
  const double q3 = 0x1.71de3a556c734p-19 + r * 0x1.27e4fb7789f5cp-22;  // 1/9!, 1/10!
  const double q4 = 0x1.ae64567f544e4p-26 + r * 0x1.1eed8eff8d898p-29;  // 1/11!, 1/12!
  const double q5 = 0x1.6124613a86d09p-33 + r * 0x1.93974a8c07c9dp-37;  // 1/13!, 1/14!
  const double series = (q0 + r2 * q1) + r4 * ((q2 + r2 * q3) + r4 * (q4 + r2 * q5));

  const Pair half = half_square(r);
  const double rest = r2 * r * series + (half.low + (c + c * r));
  return {r, half.high + rest, biased_k};
}

// 2^k for k in [-1022, 1023] given k + 2048.
QUIRE_MATH_INLINE double power_of_two(std::uint64_t biased_k) {
  return std::bit_cast<double>((biased_k - (2048 - 1023)) << 52);
}

// e^x as an unevaluated sum, relative error about 2^-57. |x| <= 700.
QUIRE_MATH_INLINE Pair exp_pair(double x) {
  const ExpParts parts = exp_parts(x);
  const double scale = power_of_two(parts.biased_k);
  const Pair lead = sum_ordered(1.0, parts.reduced);
  const Pair sum = sum_ordered(lead.high, lead.low + parts.tail);
  return {scale * sum.high, scale * sum.low};
}

// k ln2 + log(1 + f) + tail for 1 + f in [sqrt(1/2), sqrt(2)]. With s = f / (2 + f):
//   log(1 + f) = 2 atanh(s) = f - f^2/2 + s (f^2/2 + R),   R = 2 s^2/3 + 2 s^4/5 + .. + 2 s^20/21
// with f^2/2 carried exactly and the sums of the large terms exact; the rest of the series is below
// 2^-60 of the result.
QUIRE_MATH_INLINE double log_sum(double k, double f, double tail) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double z2 = z * z;
  const double z4 = z2 * z2;
  const double p0 = 0x1.5555555555555p-1 + z * 0x1.999999999999ap-2;  // 2/3, 2/5
  const double p1 = 0x1.2492492492492p-2 + z * 0x1.c71c71c71c71cp-3;  // 2/7, 2/9
  const double p2 = 0x1.745d1745d1746p-3 + z * 0x1.3b13b13b13b14p-3;  // 2/11, 2/13
  const double p3 = 0x1.1111111111111p-3 + z * 0x1.e1e1e1e1e1e1ep-4;  // 2/15, 2/17
  const double p4 = 0x1.af286bca1af28p-4 + z * 0x1.8618618618618p-4;  // 2/19, 2/21
  const double series = z * ((p0 + z2 * p1) + z4 * ((p2 + z2 * p3) + z4 * p4));

  const Pair half = half_square(f);
  const Pair lead = sum_ordered(f, -half.high);
  const Pair sum = sum_ordered(k * ln2_high, lead.high);
  const double rest = (lead.low - half.low) + s * (half.high + half.low + series);
  return sum.high + (sum.low + (rest + (k * ln2_low + tail)));
}

// u = 2^exponent * significand, the significand in [sqrt(1/2), sqrt(2)], for positive normal u.
struct Split {
  double exponent;
  double significand;
};

QUIRE_MATH_INLINE Split split(double u) {
  const std::uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
  const std::uint64_t moved = std::bit_cast<std::uint64_t>(u) + (0x3ff0000000000000 - sqrt_half);
  // An integer below 2^52 in the low bits of 2^52 turns into a double without a conversion
  // instruction.
  const double biased = std::bit_cast<double>((moved >> 52) | 0x4330000000000000);
  return {biased - (0x1p+52 + 1023.0),
          std::bit_cast<double>((moved & 0x000fffffffffffff) + sqrt_half)};
}

// log(1 + x + x_low) for finite x > -1 and |x_low| at most about an ulp of x.
QUIRE_MATH_INLINE double log1p_sum(double x, double x_low) {
  const double u = 1.0 + x;
  const double u_low = (x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x)) + x_low;
  const Split parts = split(u);
  // Without an exponent, f = x itself holds more bits than u - 1 does.
  const bool direct = parts.exponent == 0.0;
  return log_sum(parts.exponent, direct ? x : parts.significand - 1.0,
                 (direct ? x_low : u_low) / u);
}

}  // namespace detail

// e^x. Error at most 0.57 ulp, subnormal results included: those are rounded once, by adding a
// power of two whose ulp is the subnormal's (double rounding would give 0.8).
QUIRE_MATH_INLINE double exp(double x) {
  // Beyond these bounds the result is 0 or infinity, and so it is at them.
  const double above = x < -746.0 ? -746.0 : x;
  const double bounded = above > 710.0 ? 710.0 : above;
  const detail::ExpParts parts = detail::exp_parts(bounded);
  const detail::Pair lead = detail::sum_ordered(1.0, parts.reduced);

  const double log_smallest_normal = -0x1.6232bdd7abcd2p+9;
  const double aligned = std::bit_cast<double>((2049 - parts.biased_k) << 52);  // 2^(-1022 - k)
  const double align = bounded < log_smallest_normal ? aligned : 0.0;
  const detail::Pair sum = detail::sum_ordered(align, lead.high);
  const double value = (sum.high + (sum.low + (lead.low + parts.tail))) - align;

  // 2^k in two factors, since k reaches 1024 and -1076.
  const std::uint64_t half = parts.biased_k >> 1;
  const double scaled = value * detail::power_of_two(half + 1024) *
                        detail::power_of_two(parts.biased_k - half + 1024);
  return x != x ? detail::not_a_number : scaled;
}

// The natural logarithm; -infinity at zeros, NaN below. Error at most 0.65 ulp.
QUIRE_MATH_INLINE double log(double x) {
  const bool tiny = x < 0x1p-1022;
  const detail::Split parts = detail::split(tiny ? x * 0x1p+54 : x);
  const double exponent = parts.exponent - (tiny ? 54.0 : 0.0);
  const double finite = detail::log_sum(exponent, parts.significand - 1.0, 0.0);
  const double positive = x == detail::infinity ? detail::infinity : finite;
  const double defined = x == 0.0 ? -detail::infinity : positive;
  return x >= 0.0 ? defined : detail::not_a_number;
}

// log(1 + x), accurate for small x; -infinity at -1, NaN below; the sign of a zero is kept. Error
// at most 0.65 ulp.
QUIRE_MATH_INLINE double log1p(double x) {
  const double finite = detail::log1p_sum(x, 0.0);
  const double positive = x == detail::infinity ? detail::infinity : finite;
  // Below 2^-54 in magnitude x is the nearest double, or its neighbour.
  const double small = detail::magnitude(x) < 0x1p-54 ? x : positive;
  const double defined = x == -1.0 ? -detail::infinity : small;
  return x >= -1.0 ? defined : detail::not_a_number;
}

// The hyperbolic tangent E / (E + 2) with E = e^(2|x|) - 1, both kept as unevaluated sums until the
// division; odd, and the sign of a zero is kept. Error at most 0.64 ulp.
QUIRE_MATH_INLINE double tanh(double x) {
  const double size = detail::magnitude(x);
  const double bounded = size > 22.0 ? 22.0 : size;  // tanh(22) rounds to 1
  const detail::ExpParts parts = detail::exp_parts(2.0 * bounded);
  const double scale = detail::power_of_two(parts.biased_k);
  const detail::Pair lead = detail::sum_ordered(scale - 1.0, scale * parts.reduced);
  const detail::Pair numerator = detail::sum_ordered(lead.high, lead.low + scale * parts.tail);
  const double total = numerator.high + 2.0;
  const double total_low = numerator.high > 2.0 ? 2.0 - (total - numerator.high)
                                                : numerator.high - (total - 2.0);
  const double ratio = detail::quotient(numerator, {total, total_low + numerator.low});
  // Below 2^-28 the cubic term is less than a sixteenth of an ulp.
  const double value = size < 0x1p-28 ? size : ratio;
  return x != x ? detail::not_a_number : detail::with_sign_of(value, x);
}

// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x so that small results keep their bits. Error at
// most 0.56 ulp.
QUIRE_MATH_INLINE double sigmoid(double x) {
  const double size = detail::magnitude(x);
  const double bounded = size > 50.0 ? 50.0 : size;
  const detail::Pair power = detail::exp_pair(-bounded);
  const detail::Pair one = detail::sum_ordered(1.0, power.high);
  const bool negative = x < 0.0;
  const double ratio = detail::quotient({negative ? power.high : 1.0, negative ? power.low : 0.0},
                                        {one.high, one.low + power.low});
  // Below e^-40 the denominator is 1 to within 2^-57.
  const double value = x < -40.0 ? math::exp(x) : ratio;
  return x != x ? detail::not_a_number : value;
}

// log(1 + e^x), and x itself past 20 (E3). Error at most 0.65 ulp of that definition.
QUIRE_MATH_INLINE double softplus(double x) {
  const double above = x < -50.0 ? -50.0 : x;
  const double bounded = above > 20.0 ? 20.0 : above;
  const detail::Pair power = detail::exp_pair(bounded);
  const double sum = detail::log1p_sum(power.high, power.low);
  // Below e^-40 the logarithm is its argument to within 2^-58.
  const double value = x < -40.0 ? math::exp(x) : sum;
  const double defined = x > 20.0 ? x : value;
  return x != x ? detail::not_a_number : defined;
}

}  // namespace QUIRE_MATH_ABI
}  // namespace quire::reference::math
