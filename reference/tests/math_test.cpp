// Tests of the reference's transcendental functions: error against MPFR, and bits pinned for every
// architecture.
#include "../src/transcendental.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#if QUIRE_HAVE_MPFR
#include <mpfr.h>
#endif

namespace {

namespace math = quire::reference::math;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
double from_bits(std::uint64_t pattern) { return std::bit_cast<double>(pattern); }

constexpr std::uint64_t not_a_number = 0x7ff8000000000000;

// Measured 0.65 at most (math.h).
[[maybe_unused]] constexpr double bound_in_ulps = 0.75;

std::uint64_t mixed(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Pinned {
  double argument;
  std::uint64_t result;
};

// A function, the interval where its values vary, arguments near which its method changes course,
// the bits of some results, and a digest of the bits of 100,000 more.
struct Function {
  std::string name;
  double (*compute)(double);
  double low, high;
  std::vector<double> edges;
  std::vector<Pinned> pinned;
  std::uint64_t digest;
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"exp",
       [](double x) { return math::exp(x); },
       -746.0,
       710.0,
       {-0x1.62e42fefa39efp-2, 0x1.62e42fefa39efp-2, 0x1.0a2b23f3bab73p+0, -0x1.205966f2b4f12p+5,
       0x1.62e42fefa39efp+9, -0x1.6232bdd7abcd2p+9, -0x1.74910d52d3051p+9, -0x1.74046dfefd9d0p+9},
       {{0x1p-60, 0x3ff0000000000000}, {-0x1p-54, 0x3ff0000000000000},
       {0x1p-27, 0x3ff0000002000000}, {-0x1p-10, 0x3feff800ffeaac00}, {0.1, 0x3ff1aec7b35a00d4},
       {-0.1, 0x3fecf46d99d52b3a}, {0.5, 0x3ffa61298e1e069c},
       {-0.34657359027997264, 0x3fe6a09e667f3bcd}, {0.34657359027997264, 0x3ff6a09e667f3bcc},
       {1.0, 0x4005bf0a8b145769}, {-1.0, 0x3fd78b56362cef38}, {2.5, 0x40285d6fd931e0bb},
       {-7.0, 0x3f4de16b9c24a98f}, {10.0, 0x40d5829dcf950560}, {-20.0, 0x3e21b48655f37267},
       {88.5, 0x47e99b987155fe28}, {-104.0, 0x368f1e6b68529e33}, {300.0, 0x5afc05c0a7166b4a},
       {-708.0, 0x0017c8ab2288c9ab}, {-708.5, 0x000e6cf6d08897ac}, {-730.0, 0x00000000001c7ea3},
       {-745.0, 0x0000000000000001}, {709.5, 0x7fe81e9b4b52d0c9}, {709.78, 0x7fefe9ce5c4c52b4}},
       0xf45ae626fb00f604},
      {"log",
       [](double x) { return math::log(x); },
       0.0,
       4.0,
       {1.0, 0x1.6a09e667f3bcdp-1, 0x1.6a09e667f3bcdp+0, 2.0, 0x1p-1022, 0x1p-1074,
       0x1.fffffffffffffp+1023, 0x1.5bf0a8b145769p+1},
       {{0x1p-1074, 0xc0874385446d71c3}, {0x1.8p-1060, 0xc086f2a4f5736e06},
       {0x1p-1022, 0xc086232bdd7abcd2}, {1e-300, 0xc085963447f87fb5}, {1e-10, 0xc037069e2aa2aa5b},
       {0.1, 0xc0026bb1bbb55515}, {0.5, 0xbfe62e42fefa39ef}, {0.7, 0xbfd6d3c324e13f50},
       {0.7071067811865475, 0xbfd62e42fefa39f1}, {0.7071067811865477, 0xbfd62e42fefa39eb},
       {0.99, 0xbf8495453e6fd4bc}, {0x1.fffffffffffffp-1, 0xbca0000000000000},
       {0x1.0000000000001p+0, 0x3cafffffffffffff}, {1.01, 0x3f8460d6ccca367c},
       {1.4142135623730949, 0x3fd62e42fefa39ee}, {1.4142135623730951, 0x3fd62e42fefa39f0},
       {1.5, 0x3fd9f323ecbf984c}, {2.0, 0x3fe62e42fefa39ef},
       {2.718281828459045, 0x3ff0000000000000}, {10.0, 0x40026bb1bbb55516},
       {12345.678, 0x4022d79559791e31}, {1e100, 0x406cc845b54b54f2},
       {0x1.fffffffffffffp+1023, 0x40862e42fefa39ef}},
       0x64347fd8121ea7ae},
      {"log1p",
       [](double x) { return math::log1p(x); },
       -1.0,
       3.0,
       {-1.0, 0x1p-54, -0x1p-54, -0x1.2bec333018867p-2, 0x1.a827999fcef34p-2, 1.0, -0.5, 0x1p+53,
       0x1p-537, -0x1p-26},
       {{0x1p-1074, 0x0000000000000001}, {0x1p-540, 0x1e30000000000000},
       {0x1p-54, 0x3c90000000000000}, {-0x1p-53, 0xbca0000000000000},
       {0x1p-30, 0x3e0fffffffc00000}, {-1e-5, 0xbee4f8bc681e6006}, {0.001, 0x3f5060354f8c3ebf},
       {0.1, 0x3fb8663f793c46c7}, {-0.1, 0xbfbaf8e8210a415e},
       {0.41421356237309503, 0x3fd62e42fefa39ef}, {0.4142135623730952, 0x3fd62e42fefa39f1},
       {-0.29289321881345254, 0xbfd62e42fefa39f1}, {-0.2928932188134524, 0xbfd62e42fefa39ee},
       {0.5, 0x3fd9f323ecbf984c}, {-0.5, 0xbfe62e42fefa39ef}, {-0.9, 0xc0026bb1bbb55516},
       {-0.9999999999999999, 0xc0425e4f7b2737fa}, {1.0, 0x3fe62e42fefa39ef},
       {1.5, 0x3fed5240f0e0e078}, {10.0, 0x40032ee3b77f374c}, {12345.678, 0x4022d79ff745b2fd},
       {9007199254740993.0, 0x40425e4f7b2737fa}, {1e300, 0x4085963447f87fb5}},
       0xcf6d4b575b00543b},
      {"tanh",
       [](double x) { return math::tanh(x); },
       -22.5,
       22.5,
       {0x1p-28, -0x1p-28, 0x1.62e42fefa39efp-3, -0x1.62e42fefa39efp-2, 0x1.193ea7aad030bp-1, 22.0,
       0x1.30fc1931f09cap+4},
       {{0x1p-1074, 0x0000000000000001}, {0x1p-29, 0x3e20000000000000},
       {0x1p-28, 0x3e30000000000000}, {1e-5, 0x3ee4f8b588e06854}, {-0.001, 0xbf50624d77516ce2},
       {0.1, 0x3fb983d7795f413a}, {0.17, 0x3fc58d8296a405bd},
       {0.1732867951399863, 0x3fc5f619980c4336}, {0.18, 0x3fc6cb5a984db976},
       {-0.25, 0xbfcf597ea69a1c86}, {0.34657359027997264, 0x3fd5555555555555},
       {0.5, 0x3fdd9353d7568af3}, {0.5493061443340549, 0x3fe0000000000000},
       {-0.75, 0xbfe45323e552f228}, {1.0, 0x3fe85efab514f394}, {-1.5, 0xbfecf6f9786df577},
       {2.0, 0x3feed9505e1bc3d4}, {3.0, 0x3fefd77d111a0b00}, {5.0, 0x3fefff419668df11},
       {-8.0, 0xbfefffff872a91f8}, {12.5, 0x3feffffffffc2eb9}, {18.7, 0x3fefffffffffffff},
       {19.0615, 0x3fefffffffffffff}, {21.9, 0x3ff0000000000000}},
       0x3b00196fa5770c10},
      {"sigmoid",
       [](double x) { return math::sigmoid(x); },
       -60.0,
       60.0,
       {-40.0, -0x1.62e42fefa39efp-2, 0x1.62e42fefa39efp-2, 0x1p-53, -0x1p-54, 36.5,
       -0x1.6232bdd7abcd2p+9, -0x1.74910d52d3051p+9},
       {{0x1p-60, 0x3fe0000000000000}, {0x1p-52, 0x3fe0000000000000}, {1e-5, 0x3fe000053e2d6239},
       {-0.001, 0x3fdffbe76c90fd99}, {0.1, 0x3fe0cca12729afb8}, {-0.1, 0x3fde66bdb1aca090},
       {0.5, 0x3fe3eb2fd4d34391}, {-0.5, 0x3fd829a0565978df}, {1.0, 0x3fe764d4f5d5a2bd},
       {-1.0, 0x3fd136561454ba86}, {2.0, 0x3fec2f7d5a8a79ca}, {-2.0, 0x3fbe84152bac31af},
       {5.0, 0x3fefc92c130538e1}, {-5.0, 0x3f7b69f67d638f8e}, {10.0, 0x3fefffa0cb346f89},
       {-10.0, 0x3f07cd32e41dd960}, {-20.5, 0x3e157a3afe79aea9}, {30.0, 0x3feffffffffffcb5},
       {36.7, 0x3fefffffffffffff}, {-39.99, 0x3c53c9fa9072721e}, {-40.01, 0x3c5365aa69166a56},
       {-100.0, 0x36ea8c1f14e2af5d}, {-709.0, 0x0008bfe55de02338}, {-745.0, 0x0000000000000001}},
       0xbac4f76bed5b692f},
      {"softplus",
       [](double x) { return math::softplus(x); },
       -45.0,
       21.0,
       {20.0, -40.0, 0x1p-53, -0x1p-54, -0x1.c34366179d427p-1, 0x1.62e42fefa39efp-2,
       -0x1.62e42fefa39efp-2, -0x1.6232bdd7abcd2p+9, -0x1.74910d52d3051p+9},
       {{0x1p-60, 0x3fe62e42fefa39ef}, {1e-5, 0x3fe62e4d7b56b62f}, {-0.001, 0x3fe62a2aaea15bd9},
       {0.1, 0x3fe7d218f1c8904f}, {-0.1, 0x3fe49ee5be955d1c}, {0.5, 0x3fef2ba37edae032},
       {-0.5, 0x3fde5746fdb5c064}, {-0.8813735870195432, 0x3fd62e42fefa39ee},
       {-0.88, 0x3fd634db3e84cd38}, {-0.9, 0x3fd5d5770fb8311e}, {1.0, 0x3ff5031eafefb049},
       {-1.0, 0x3fd40c7abfbec124}, {2.0, 0x400103f2d54301d5}, {-2.0, 0x3fc03f2d54301d49},
       {5.0, 0x401406e06368916a}, {-5.0, 0x3f7b818da245a728}, {10.0, 0x40240005f3559328},
       {-10.0, 0x3f07cd564c9e0d19}, {19.99, 0x4033fd70a3dffb47}, {20.0, 0x403400000008da43},
       {20.01, 0x4034028f5c28f5c3}, {-39.99, 0x3c53c9fa9072721e}, {-40.01, 0x3c5365aa69166a56},
       {-100.0, 0x36ea8c1f14e2af5d}, {-720.0, 0x0000000993b4dc95}},
       0x27c68a73f88c8a84},
  };
  return all;
}

// Argument number i: exact operations only, so the same on every machine. Any bits at all,
// exponents near 0, the varying interval, and the neighbours of the edges take turns. The result
// may be NaN or outside the domain.
double argument(const Function& function, std::uint64_t i) {
  const std::uint64_t random = mixed(i);
  const std::uint64_t more = mixed(random);
  const double unit = static_cast<double>(random >> 11) * 0x1p-53;
  switch (i % 4) {
    case 0:
      return from_bits(random);
    case 1: {
      const double size = std::ldexp(1.0 + unit, static_cast<int>(more % 72) - 60);
      return (random & 1) != 0 && function.low < 0 ? -size : size;
    }
    case 2:
      return function.low + unit * (function.high - function.low);
    default: {
      const double edge = function.edges[more % function.edges.size()];
      const std::uint64_t width = (more >> 32) % 2 == 0 ? 64 : std::uint64_t{1} << 40;
      return from_bits(bits(edge) + random % width - width / 2);
    }
  }
}

std::uint64_t digest(const Function& function) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i)
    sum = mixed(sum ^ bits(function.compute(argument(function, i))));
  return sum;
}

#if QUIRE_HAVE_MPFR

// A number of 200 bits.
class Exact {
 public:
  Exact() { mpfr_init2(value_, 200); }
  explicit Exact(double x) : Exact() { mpfr_set_d(value_, x, MPFR_RNDN); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  ~Exact() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }
  double rounded() const { return mpfr_get_d(value_, MPFR_RNDN); }
  // The exponent of an ulp of this number in float64.
  int ulp() const {
    if (mpfr_regular_p(value_) == 0) return -1074;
    const auto exponent = mpfr_get_exp(value_) - 1;
    return static_cast<int>(exponent < -1022 ? -1022 : exponent) - 52;
  }

 private:
  mpfr_t value_;
};

// The function by name, in place.
void evaluate(const std::string& name, mpfr_ptr x) {
  const auto nearest = MPFR_RNDN;
  if (name == "exp") mpfr_exp(x, x, nearest);
  if (name == "log") mpfr_log(x, x, nearest);
  if (name == "log1p") mpfr_log1p(x, x, nearest);
  if (name == "tanh") mpfr_tanh(x, x, nearest);
  if (name == "sigmoid") {
    mpfr_neg(x, x, nearest);
    mpfr_exp(x, x, nearest);
    mpfr_add_ui(x, x, 1, nearest);
    mpfr_ui_div(x, 1, x, nearest);
  }
  if (name == "softplus" && !(mpfr_cmp_ui(x, 20) > 0)) {  // E3
    mpfr_exp(x, x, nearest);
    mpfr_log1p(x, x, nearest);
  }
}

// The inverse function by name, in place.
void invert(const std::string& name, mpfr_ptr y) {
  const auto nearest = MPFR_RNDN;
  if (name == "exp") mpfr_log(y, y, nearest);
  if (name == "log") mpfr_exp(y, y, nearest);
  if (name == "log1p") mpfr_expm1(y, y, nearest);
  if (name == "tanh") mpfr_atanh(y, y, nearest);
  if (name == "sigmoid") {
    mpfr_ui_div(y, 1, y, nearest);
    mpfr_sub_ui(y, y, 1, nearest);
    mpfr_log(y, y, nearest);
    mpfr_neg(y, y, nearest);
  }
  if (name == "softplus") {
    mpfr_expm1(y, y, nearest);
    mpfr_log(y, y, nearest);
  }
}

// The argument whose result lies nearest to the midpoint of the results at x and its upper
// neighbour: near a tie wherever the function is flat against the spacing of doubles.
double near_tie(const Function& function, double x) {
  const double y = function.compute(x);
  if (!std::isfinite(y)) return x;
  Exact middle(y);
  mpfr_add_d(middle.get(), middle.get(), std::ldexp(0.5, Exact(y).ulp()), MPFR_RNDN);
  invert(function.name, middle.get());
  return middle.rounded();
}

// The error of the function at x in ulps of the exact result. A NaN must have its one pattern, an
// infinity be right.
double error_in_ulps(const Function& function, double x) {
  const double wrong = std::numeric_limits<double>::infinity();
  const double got = function.compute(x);
  Exact exact(x);
  evaluate(function.name, exact.get());
  const double rounded = exact.rounded();
  if (std::isnan(rounded)) return bits(got) == not_a_number ? 0.0 : wrong;
  if (std::isnan(got) || std::signbit(got) != std::signbit(rounded)) return wrong;
  if (std::isinf(got) || mpfr_inf_p(exact.get()) != 0) return got == rounded ? 0.0 : wrong;
  const int ulp = exact.ulp();
  mpfr_sub_d(exact.get(), exact.get(), got, MPFR_RNDN);
  mpfr_mul_2si(exact.get(), exact.get(), -ulp, MPFR_RNDN);
  return std::fabs(exact.rounded());
}

#endif

}  // namespace

TEST_CASE("pinned results: the same bits on every architecture") {
  for (const Function& function : functions()) {
    CAPTURE(function.name);
    for (const Pinned& pinned : function.pinned) {
      CAPTURE(pinned.argument);
      CHECK(bits(function.compute(pinned.argument)) == pinned.result);
    }
    CHECK(digest(function) == function.digest);
  }
}

TEST_CASE("special values") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double largest = std::numeric_limits<double>::max();
  const double smallest = std::numeric_limits<double>::denorm_min();
  for (const Function& function : functions()) {
    CAPTURE(function.name);
    for (const std::uint64_t pattern :
         {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff0000000000001u, 0xffffffffffffffffu})
      CHECK(bits(function.compute(from_bits(pattern))) == not_a_number);
  }
  CHECK(math::exp(0.0) == 1.0);
  CHECK(math::exp(-0.0) == 1.0);
  CHECK(math::exp(infinity) == infinity);
  CHECK(bits(math::exp(-infinity)) == 0);
  CHECK(math::exp(largest) == infinity);
  CHECK(bits(math::exp(-largest)) == 0);
  CHECK(std::isfinite(math::exp(0x1.62e42fefa39efp+9)));
  CHECK(math::exp(0x1.62e42fefa39f0p+9) == infinity);
  CHECK(math::exp(-0x1.74910d52d3051p+9) == smallest);
  CHECK(bits(math::exp(-0x1.74910d52d3053p+9)) == 0);

  CHECK(bits(math::log(1.0)) == 0);
  CHECK(math::log(0.0) == -infinity);
  CHECK(math::log(-0.0) == -infinity);
  CHECK(math::log(infinity) == infinity);
  for (const double x : {-1.0, -smallest, -largest, -infinity})
    CHECK(bits(math::log(x)) == not_a_number);

  CHECK(bits(math::log1p(0.0)) == 0);
  CHECK(bits(math::log1p(-0.0)) == bits(-0.0));
  CHECK(math::log1p(-1.0) == -infinity);
  CHECK(math::log1p(infinity) == infinity);
  CHECK(math::log1p(smallest) == smallest);
  for (const double x : {-1.0 - 0x1p-52, -largest, -infinity})
    CHECK(bits(math::log1p(x)) == not_a_number);

  CHECK(bits(math::tanh(0.0)) == 0);
  CHECK(bits(math::tanh(-0.0)) == bits(-0.0));
  CHECK(math::tanh(-smallest) == -smallest);
  for (const double x : {22.0, largest, infinity}) {
    CHECK(math::tanh(x) == 1.0);
    CHECK(math::tanh(-x) == -1.0);
  }

  CHECK(math::sigmoid(0.0) == 0.5);
  CHECK(math::sigmoid(-0.0) == 0.5);
  CHECK(math::sigmoid(infinity) == 1.0);
  CHECK(bits(math::sigmoid(-infinity)) == 0);

  // E3: x itself past 20, the logarithm at 20.
  CHECK(math::softplus(infinity) == infinity);
  CHECK(bits(math::softplus(-infinity)) == 0);
  CHECK(math::softplus(0x1.4000000000001p+4) == 0x1.4000000000001p+4);
  CHECK(math::softplus(20.0) > 20.0);
  CHECK(math::softplus(largest) == largest);
}

TEST_CASE("tanh is odd to the bit") {
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double x = argument(functions()[3], i);
    if (!std::isnan(x)) CHECK(bits(math::tanh(-x)) == bits(-math::tanh(x)));
  }
}

#if QUIRE_HAVE_MPFR
TEST_CASE("errors against MPFR stay below one ulp") {
  for (const Function& function : functions()) {
    double largest = 0.0;
    double at = 0.0;
    const auto look = [&](double x) {
      const double error = error_in_ulps(function, x);
      if (error > largest) {
        largest = error;
        at = x;
      }
    };
    for (const Pinned& pinned : function.pinned) look(pinned.argument);
    for (std::uint64_t i = 0; i < 200'000; ++i) look(argument(function, i));
    for (std::uint64_t i = 0; i < 30'000; ++i) look(near_tie(function, argument(function, i)));
    MESSAGE(function.name << ": largest error " << largest << " ulp, at " << at);
    CHECK(largest < bound_in_ulps);
  }
}
#endif
