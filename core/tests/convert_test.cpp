// Tests of the floating conversions against an independent definition: the nearest of all values of
// the type.
#include <quire/convert.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace {

// A type as its definition in words: fields, bias, and which patterns are no numbers.
struct Format {
  std::string name;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;
  bool saturates;
  unsigned (*narrow)(double);
  double (*widen)(unsigned);

  unsigned sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  bool is_nan(unsigned pattern) const {
    const unsigned magnitude = pattern & (sign_bit() - 1);
    const unsigned top = (sign_bit() - 1) >> mantissa_bits;
    const unsigned mantissa = magnitude & ((1u << mantissa_bits) - 1);
    if (magnitude >> mantissa_bits != top) return false;
    return has_infinity ? mantissa != 0 : mantissa == (1u << mantissa_bits) - 1;
  }
  bool is_infinity(unsigned pattern) const {
    const unsigned magnitude = pattern & (sign_bit() - 1);
    return has_infinity && magnitude == (sign_bit() - 1) - ((1u << mantissa_bits) - 1);
  }
  // The value of a finite pattern by the formula of IEEE 754.
  double value(unsigned pattern) const {
    const unsigned magnitude = pattern & (sign_bit() - 1);
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const int mantissa = static_cast<int>(magnitude & ((1u << mantissa_bits) - 1));
    const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    const double size =
        std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
    return (pattern & sign_bit()) != 0 ? -size : size;
  }
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"f16", 5, 10, 15, true, false, [](double x) -> unsigned { return quire::to_f16(x); },
       [](unsigned p) { return quire::from_f16(static_cast<std::uint16_t>(p)); }},
      {"bf16", 8, 7, 127, true, false, [](double x) -> unsigned { return quire::to_bf16(x); },
       [](unsigned p) { return quire::from_bf16(static_cast<std::uint16_t>(p)); }},
      {"f8_e4m3fn", 4, 3, 7, false, true,
       [](double x) -> unsigned { return quire::to_f8_e4m3fn(x); },
       [](unsigned p) { return quire::from_f8_e4m3fn(static_cast<std::uint8_t>(p)); }},
      {"f8_e5m2", 5, 2, 15, true, true, [](double x) -> unsigned { return quire::to_f8_e5m2(x); },
       [](unsigned p) { return quire::from_f8_e5m2(static_cast<std::uint8_t>(p)); }},
  };
  return all;
}

// The finite magnitudes of a type, rising; index = pattern.
std::vector<double> magnitudes(const Format& format) {
  std::vector<double> values;
  for (unsigned p = 0; p < format.sign_bit(); ++p)
    if (!format.is_nan(p) && !format.is_infinity(p)) values.push_back(format.value(p));
  return values;
}

// Rounding by definition. Past the last finite value stands the value an unbounded exponent would
// give next: what rounds to it overflows. The midpoint of two neighbours is exact in double.
unsigned nearest(const Format& format, const std::vector<double>& values, double x) {
  const unsigned sign = std::signbit(x) ? format.sign_bit() : 0;
  const unsigned largest = static_cast<unsigned>(values.size()) - 1;
  if (std::isnan(x)) return ~0u;
  const double size = std::fabs(x);
  const double step = values[largest] - values[largest - 1];
  const unsigned overflow = format.saturates ? largest : largest + 1;
  const auto above = std::upper_bound(values.begin(), values.end(), size);
  const unsigned lower = static_cast<unsigned>(above - values.begin()) - 1;
  const double next = lower == largest ? values[largest] + step : values[lower + 1];
  const double middle = values[lower] + (next - values[lower]) / 2;
  const unsigned upper = lower == largest ? overflow : lower + 1;
  if (size < middle) return lower | sign;
  if (size > middle) return upper | sign;
  return (lower % 2 == 0 ? lower : upper) | sign;
}

std::uint64_t mixed(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

}  // namespace

TEST_CASE("widening gives the value of every pattern, and narrowing it gives the pattern back") {
  for (const Format& format : formats()) {
    CAPTURE(format.name);
    const unsigned largest = static_cast<unsigned>(magnitudes(format).size()) - 1;
    std::size_t wrong = 0;
    for (unsigned p = 0; p < 2 * format.sign_bit(); ++p) {
      const double wide = format.widen(p);
      const unsigned back = format.narrow(wide);
      const unsigned sign = p & format.sign_bit();
      bool good = std::signbit(wide) == (sign != 0) && (back & format.sign_bit()) == sign;
      if (format.is_nan(p)) {
        good = good && std::isnan(wide) && format.is_nan(back);
      } else if (format.is_infinity(p)) {
        good = good && std::isinf(wide) && back == (format.saturates ? largest | sign : p);
      } else {
        good = good && bits(wide) == bits(format.value(p)) && back == p;
      }
      if (!good) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("narrowing takes the nearest value, ties to even, at every midpoint and beside it") {
  for (const Format& format : formats()) {
    CAPTURE(format.name);
    const std::vector<double> values = magnitudes(format);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double next = i + 1 < values.size() ? values[i + 1] : 2 * values[i] - values[i - 1];
      const double middle = values[i] + (next - values[i]) / 2;
      for (const double point : {values[i], middle, next}) {
        for (const double x : {point, std::nextafter(point, 0.0), std::nextafter(point, 1e300)}) {
          if (format.narrow(x) != nearest(format, values, x)) ++wrong;
          if (format.narrow(-x) != nearest(format, values, -x)) ++wrong;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("narrowing takes the nearest value at random doubles") {
  for (const Format& format : formats()) {
    CAPTURE(format.name);
    const std::vector<double> values = magnitudes(format);
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < 400'000; ++i) {
      const std::uint64_t random = mixed(i);
      // A third over all of float64; the rest with exponents in and around the type's range, half
      // of those with few bits set, so that ties and near ties occur.
      double x = std::bit_cast<double>(random);
      if (i % 3 != 0) {
        const int span = 2 * format.bias + format.mantissa_bits + 8;
        const int exponent = static_cast<int>(mixed(random) % static_cast<unsigned>(span)) -
                             format.bias - format.mantissa_bits - 3;
        const std::uint64_t kept =
            i % 3 == 1 ? ~std::uint64_t{0} : ~std::uint64_t{0} << (52 - format.mantissa_bits - 2);
        const double significand =
            std::bit_cast<double>(0x3ff0000000000000u | (random & kept & 0x000fffffffffffffu));
        x = std::ldexp((random >> 63) != 0 ? -significand : significand, exponent);
      }
      const unsigned got = format.narrow(x);
      const bool good = std::isnan(x) ? format.is_nan(got) : got == nearest(format, values, x);
      if (!good) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("narrowing rounds once: float32 on the way would give another value") {
  // Just above a tie by less than float32 can hold.
  const double f16_tie = 1.0 + 0x1p-11;
  CHECK(quire::to_f16(f16_tie) == 0x3c00);
  CHECK(quire::to_f16(f16_tie + 0x1p-40) == 0x3c01);
  CHECK(quire::to_f16(static_cast<double>(static_cast<float>(f16_tie + 0x1p-40))) == 0x3c00);
  CHECK(quire::to_bf16(1.0 + 0x1p-8 + 0x1p-50) == 0x3f81);
  CHECK(quire::to_f8_e4m3fn(1.0 + 0x1p-4 + 0x1p-50) == 0x39);
  CHECK(quire::to_f8_e5m2(1.0 + 0x1p-3 + 0x1p-50) == 0x3d);
}

TEST_CASE("past the range: infinity in f16 and bf16, the largest finite value in fp8 (E5)") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(quire::to_f16(65519.0) == 0x7bff);
  CHECK(quire::to_f16(65520.0) == 0x7c00);
  CHECK(quire::to_f16(-infinity) == 0xfc00);
  CHECK(quire::to_bf16(std::numeric_limits<double>::max()) == 0x7f80);
  CHECK(quire::to_bf16(infinity) == 0x7f80);
  for (const double x : {448.0, 449.0, 464.0, 480.0, 1e300, infinity}) {
    CHECK(quire::to_f8_e4m3fn(x) == 0x7e);
    CHECK(quire::to_f8_e4m3fn(-x) == 0xfe);
  }
  for (const double x : {57344.0, 61440.0, 65536.0, 1e300, infinity}) {
    CHECK(quire::to_f8_e5m2(x) == 0x7b);
    CHECK(quire::to_f8_e5m2(-x) == 0xfb);
  }
  CHECK(quire::from_f8_e4m3fn(0x7e) == 448.0);
  CHECK(quire::from_f8_e5m2(0x7b) == 57344.0);
  CHECK(quire::from_f8_e5m2(0xfc) == -infinity);
}

TEST_CASE("NaN of any payload stays a quiet NaN of its sign") {
  for (const std::uint64_t payload :
       {0x7ff8000000000000u, 0x7ff0000000000001u, 0x7fffffffffffffffu}) {
    const double positive = std::bit_cast<double>(payload);
    const double negative = std::bit_cast<double>(payload | 0x8000000000000000u);
    CHECK(quire::to_f16(positive) == 0x7e00);
    CHECK(quire::to_f16(negative) == 0xfe00);
    CHECK(quire::to_bf16(positive) == 0x7fc0);
    CHECK(quire::to_bf16(negative) == 0xffc0);
    CHECK(quire::to_f8_e4m3fn(positive) == 0x7f);
    CHECK(quire::to_f8_e4m3fn(negative) == 0xff);
    CHECK(quire::to_f8_e5m2(positive) == 0x7e);
    CHECK(quire::to_f8_e5m2(negative) == 0xfe);
    CHECK(std::isnan(quire::to_f32(positive)));
  }
}

TEST_CASE("the edges of the subnormals, and signed zeros") {
  CHECK(quire::to_f16(0x1p-24) == 0x0001);
  CHECK(quire::to_f16(0x1p-25) == 0x0000);
  CHECK(quire::to_f16(std::nextafter(0x1p-25, 1.0)) == 0x0001);
  CHECK(quire::to_f16(-0x1p-26) == 0x8000);
  CHECK(quire::to_f16(-0.0) == 0x8000);
  CHECK(quire::to_f16(std::nextafter(0x1p-14, 0.0)) == 0x0400);
  CHECK(quire::to_bf16(0x1p-133) == 0x0001);
  CHECK(quire::to_bf16(0x1p-134) == 0x0000);
  CHECK(quire::to_bf16(-0.0) == 0x8000);
  CHECK(quire::to_f8_e4m3fn(0x1p-9) == 0x01);
  CHECK(quire::to_f8_e4m3fn(0x1p-10) == 0x00);
  CHECK(quire::to_f8_e4m3fn(-0.0) == 0x80);
  CHECK(quire::to_f8_e5m2(0x1p-16) == 0x01);
  CHECK(quire::to_f8_e5m2(-0x1p-17) == 0x80);
  CHECK(quire::to_bf16(std::numeric_limits<double>::denorm_min()) == 0x0000);
  CHECK(bits(quire::from_f16(0x8000)) == bits(-0.0));
  CHECK(bits(quire::from_f8_e4m3fn(0x80)) == bits(-0.0));
}

TEST_CASE("float32: nearest even once, exact back") {
  CHECK(quire::to_f32(1.0 + 0x1p-24) == 1.0f);
  CHECK(quire::to_f32(1.0 + 0x1p-24 + 0x1p-52) == 1.0f + 0x1p-23f);
  CHECK(quire::to_f32(1e300) == std::numeric_limits<float>::infinity());
  CHECK(quire::to_f32(0x1p-149) == std::numeric_limits<float>::denorm_min());
  CHECK(quire::to_f32(0x1p-150) == 0.0f);
  CHECK(std::signbit(quire::to_f32(-0.0)));
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(mixed(i)));
    if (!std::isnan(x)) CHECK(quire::to_f32(quire::from_f32(x)) == x);
  }
}

TEST_CASE("arrays convert as their elements do") {
  std::vector<double> from;
  for (std::uint64_t i = 0; i < 1003; ++i)
    from.push_back(std::ldexp(static_cast<double>(mixed(i) >> 11), static_cast<int>(i % 60) - 90));
  from.insert(from.end(), {0.0, -0.0, 1e300, -std::numeric_limits<double>::infinity()});
  const std::size_t count = from.size();
  std::vector<std::uint16_t> half(count), brain(count);
  std::vector<std::uint8_t> e4m3(count), e5m2(count);
  std::vector<float> single(count);
  quire::to_f16(from, half);
  quire::to_bf16(from, brain);
  quire::to_f8_e4m3fn(from, e4m3);
  quire::to_f8_e5m2(from, e5m2);
  quire::to_f32(from, single);
  std::vector<std::vector<double>> back(5, std::vector<double>(count));
  quire::from_f16(half, back[0]);
  quire::from_bf16(brain, back[1]);
  quire::from_f8_e4m3fn(e4m3, back[2]);
  quire::from_f8_e5m2(e5m2, back[3]);
  quire::from_f32(single, back[4]);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = from[i];
    const bool narrowed = half[i] == quire::to_f16(x) && brain[i] == quire::to_bf16(x) &&
                          e4m3[i] == quire::to_f8_e4m3fn(x) && e5m2[i] == quire::to_f8_e5m2(x) &&
                          single[i] == quire::to_f32(x);
    const bool widened = bits(back[0][i]) == bits(quire::from_f16(half[i])) &&
                         bits(back[1][i]) == bits(quire::from_bf16(brain[i])) &&
                         bits(back[2][i]) == bits(quire::from_f8_e4m3fn(e4m3[i])) &&
                         bits(back[3][i]) == bits(quire::from_f8_e5m2(e5m2[i])) &&
                         bits(back[4][i]) == bits(quire::from_f32(single[i]));
    if (!narrowed || !widened) ++wrong;
  }
  CHECK(wrong == 0);
}

static_assert(quire::to_f16(1.5) == 0x3e00 && quire::from_bf16(0x3fc0) == 1.5);
