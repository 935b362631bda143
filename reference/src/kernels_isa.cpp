// The kernels, compiled once per instruction set (QUIRE_ISA_NAME). Everything has internal linkage but the table, so that the linker can
// never put a wider set's code where a narrower processor would run it.
#define QUIRE_MATH_ABI QUIRE_ISA_NAME
#include "kernels.h"
#include "transcendental.h"

#define QUIRE_JOIN2(a, b) a##b
#define QUIRE_JOIN(a, b) QUIRE_JOIN2(a, b)
#define QUIRE_TEXT2(a) #a
#define QUIRE_TEXT(a) QUIRE_TEXT2(a)

namespace quire::reference {

namespace {

// Lanes are written as vectors of the set's own width, so that sums stay in registers; GCC's loop vectoriser puts them in memory.
constexpr std::int64_t lanes = QUIRE_VECTOR_BYTES / sizeof(double);
using Vector [[gnu::vector_size(QUIRE_VECTOR_BYTES)]] = double;

Vector load(const double* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}
void store(double* to, Vector vector) { __builtin_memcpy(to, &vector, sizeof vector); }

// Vectors summed side by side: enough to hide the latency of an addition.
constexpr std::int64_t side_by_side = 4;
constexpr std::int64_t block = side_by_side * lanes;

void scores(const double* keys, std::int64_t stride, const double* query, std::int64_t size, double* result, std::int64_t columns) {
  std::int64_t c = 0;
  for (; c + block <= columns; c += block) {
    Vector sum[side_by_side] = {};
    for (std::int64_t d = 0; d < size; ++d) {
      const double* row = keys + d * stride + c;
      for (std::int64_t i = 0; i < side_by_side; ++i) sum[i] += query[d] * load(row + i * lanes);
    }
    for (std::int64_t i = 0; i < side_by_side; ++i) store(result + c + i * lanes, sum[i]);
  }
  for (; c < columns; ++c) {
    double sum = 0;
    for (std::int64_t d = 0; d < size; ++d) sum += query[d] * keys[d * stride + c];
    result[c] = sum;
  }
}

void softcap(double* x, double cap, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = cap * math::tanh(x[i] / cap);
}

void weights(double* x, double greatest, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = math::exp(x[i] - greatest);
}

void accumulate(double* sums, const double* weight, const double* values, std::int64_t stride, std::int64_t columns, std::int64_t size) {
  std::int64_t v = 0;
  for (; v + block <= size; v += block) {
    Vector sum[side_by_side];
    for (std::int64_t i = 0; i < side_by_side; ++i) sum[i] = load(sums + v + i * lanes);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double* row = values + c * stride + v;
      for (std::int64_t i = 0; i < side_by_side; ++i) sum[i] += weight[c] * load(row + i * lanes);
    }
    for (std::int64_t i = 0; i < side_by_side; ++i) store(sums + v + i * lanes, sum[i]);
  }
  for (; v < size; ++v) {
    double sum = sums[v];
    for (std::int64_t c = 0; c < columns; ++c) sum += weight[c] * values[c * stride + v];
    sums[v] = sum;
  }
}

void turn(const double* from, std::int64_t from_stride, std::int64_t rows, std::int64_t size, double* to, std::int64_t to_stride) {
  // Blocks of 8 x 8: whole cache lines on both sides.
  for (std::int64_t c = 0; c < rows; c += 8) {
    const std::int64_t c_end = c + 8 < rows ? c + 8 : rows;
    for (std::int64_t d = 0; d < size; d += 8) {
      const std::int64_t d_end = d + 8 < size ? d + 8 : size;
      for (std::int64_t e = d; e < d_end; ++e) {
        for (std::int64_t row = c; row < c_end; ++row) to[e * to_stride + row] = from[row * from_stride + e];
      }
    }
  }
}

void rule(const RuleStep& step) {
  static_assert(rule_width % lanes == 0);
  constexpr std::int64_t vectors = rule_width / lanes;
  Vector prediction[vectors] = {};
  for (std::int64_t k = 0; k < step.key_size; ++k) {
    const double* state = step.state + k * rule_width;
    for (std::int64_t i = 0; i < vectors; ++i) prediction[i] += (step.decay * load(state + i * lanes)) * step.key[k];
  }
  Vector correction[vectors];
  Vector output[vectors] = {};
  for (std::int64_t i = 0; i < vectors; ++i) correction[i] = step.beta * (load(step.value + i * lanes) - prediction[i]);
  for (std::int64_t k = 0; k < step.key_size; ++k) {
    double* state = step.state + k * rule_width;
    for (std::int64_t i = 0; i < vectors; ++i) {
      const Vector updated = step.decay * load(state + i * lanes) + correction[i] * step.key[k];
      store(state + i * lanes, updated);
      output[i] += updated * step.query[k];
    }
  }
  for (std::int64_t i = 0; i < vectors; ++i) store(step.output + i * lanes, step.scale * output[i]);
}

}  // namespace

extern const Kernels QUIRE_JOIN(kernels_, QUIRE_ISA_NAME);
const Kernels QUIRE_JOIN(kernels_, QUIRE_ISA_NAME) = {QUIRE_TEXT(QUIRE_ISA_NAME), scores, softcap, weights, accumulate, turn, rule};

}  // namespace quire::reference
