// numbers.h against core's conversions, which go another way to the same patterns: every pattern, every tie, and many floats between.
#include "gpu/numbers.h"

#include <quire/convert.h>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

namespace gpu = quire::gpu;

namespace {

struct TypeUnderTest {
  const char* name;
  quire_dtype dtype;
  std::uint32_t patterns;
  float (*widen)(std::uint32_t);
  std::uint32_t (*narrow)(float);
  double (*other_widen)(std::uint32_t);
  std::uint32_t (*other_narrow)(double);
};

const std::array<TypeUnderTest, 4> types = {{
    {"f16", QUIRE_F16, 65536, [](std::uint32_t p) { return gpu::widen<gpu::F16>(p); }, [](float x) { return gpu::narrow<gpu::F16>(x); },
     [](std::uint32_t p) { return quire::from_f16(static_cast<std::uint16_t>(p)); },
     [](double x) { return std::uint32_t{quire::to_f16(x)}; }},
    {"bf16", QUIRE_BF16, 65536, [](std::uint32_t p) { return gpu::widen<gpu::Bf16>(p); }, [](float x) { return gpu::narrow<gpu::Bf16>(x); },
     [](std::uint32_t p) { return quire::from_bf16(static_cast<std::uint16_t>(p)); },
     [](double x) { return std::uint32_t{quire::to_bf16(x)}; }},
    {"f8_e4m3fn", QUIRE_F8_E4M3FN, 256, [](std::uint32_t p) { return gpu::widen<gpu::F8E4m3fn>(p); },
     [](float x) { return gpu::narrow<gpu::F8E4m3fn>(x); },
     [](std::uint32_t p) { return quire::from_f8_e4m3fn(static_cast<std::uint8_t>(p)); },
     [](double x) { return std::uint32_t{quire::to_f8_e4m3fn(x)}; }},
    {"f8_e5m2", QUIRE_F8_E5M2, 256, [](std::uint32_t p) { return gpu::widen<gpu::F8E5m2>(p); },
     [](float x) { return gpu::narrow<gpu::F8E5m2>(x); }, [](std::uint32_t p) { return quire::from_f8_e5m2(static_cast<std::uint8_t>(p)); },
     [](double x) { return std::uint32_t{quire::to_f8_e5m2(x)}; }},
}};

}  // namespace

TEST_CASE("every pattern widens as core's does") {
  for (const TypeUnderTest& type : types) {
    CAPTURE(type.name);
    std::int64_t wrong = 0;
    for (std::uint32_t pattern = 0; pattern < type.patterns; ++pattern) {
      const float value = type.widen(pattern);
      const auto other = static_cast<float>(type.other_widen(pattern));
      wrong += gpu::bits_of(value) == gpu::bits_of(other) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("every pattern, the middle to its neighbour and the floats beside them narrow as core's do") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const TypeUnderTest& type : types) {
    CAPTURE(type.name);
    std::int64_t wrong = 0, tried = 0;
    const auto check = [&](float x) {
      ++tried;
      wrong += type.narrow(x) == type.other_narrow(static_cast<double>(x)) ? 0 : 1;
    };
    for (std::uint32_t pattern = 0; pattern < type.patterns; ++pattern) {
      const float value = type.widen(pattern), next = type.widen(pattern + 1 < type.patterns ? pattern + 1 : pattern);
      const float middle = value + (next - value) / 2;
      for (const float x : {value, middle}) {
        for (const float y : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)}) check(y);
      }
    }
    for (const float x : {0.0F, -0.0F, infinity, -infinity, std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      check(x);
    }
    CHECK(wrong == 0);
    CHECK(tried == 6 * type.patterns + 8);
  }
}

TEST_CASE("floats all over the range narrow as core's do") {
  for (const TypeUnderTest& type : types) {
    CAPTURE(type.name);
    std::int64_t wrong = 0;
    constexpr std::uint64_t step = 1009;  // prime, so every low bit meets every exponent
    for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += step) {
      const float x = gpu::float_of(static_cast<std::uint32_t>(bits));
      wrong += type.narrow(x) == type.other_narrow(static_cast<double>(x)) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("fp8 saturates, the wider types do not (E5)") {
  CHECK(gpu::narrow<gpu::F8E4m3fn>(449.0F) == 0x7e);
  CHECK(gpu::narrow<gpu::F8E4m3fn>(std::numeric_limits<float>::infinity()) == 0x7e);
  CHECK(gpu::narrow<gpu::F8E4m3fn>(-1e30F) == 0xfe);
  CHECK(gpu::narrow<gpu::F8E5m2>(57345.0F) == 0x7b);
  CHECK(gpu::narrow<gpu::F8E5m2>(-std::numeric_limits<float>::infinity()) == 0xfb);
  CHECK(gpu::narrow<gpu::F16>(65520.0F) == 0x7c00);  // the tie above 65504 goes to infinity
  CHECK(gpu::narrow<gpu::F16>(65519.0F) == 0x7bff);
  CHECK(gpu::narrow<gpu::Bf16>(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("load and store take the element of each dtype") {
  for (const quire_dtype dtype : {QUIRE_F16, QUIRE_BF16, QUIRE_F32, QUIRE_F64, QUIRE_F8_E4M3FN, QUIRE_F8_E5M2}) {
    CAPTURE(dtype);
    alignas(8) unsigned char memory[64];
    std::memset(memory, 0xa5, sizeof memory);
    gpu::store(dtype, memory, 3, -1.5F);
    CHECK(gpu::load(dtype, memory, 3) == -1.5F);
    // Its neighbours keep their bits.
    int touched = 0;
    for (const unsigned char byte : memory) touched += byte != 0xa5 ? 1 : 0;
    CHECK(touched >= 1);
    CHECK(touched <= 8);
    const float left = gpu::load(dtype, memory, 2), right = gpu::load(dtype, memory, 4);
    CHECK(gpu::bits_of(left) == gpu::bits_of(right));
  }
  const double third = 1.0 / 3;
  CHECK(gpu::load(QUIRE_F64, &third, 0) == static_cast<float>(third));
}
