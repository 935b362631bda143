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

// Columns summed side by side; as many accumulators stay in registers.
constexpr std::int64_t block = 16;

void scores(const double* keys, std::int64_t stride, const double* query, std::int64_t size, double* result, std::int64_t columns) {
  std::int64_t c = 0;
  for (; c + block <= columns; c += block) {
    double sum[block] = {};
    for (std::int64_t d = 0; d < size; ++d) {
      const double* row = keys + d * stride + c;
      const double factor = query[d];
      for (std::int64_t i = 0; i < block; ++i) sum[i] += factor * row[i];
    }
    for (std::int64_t i = 0; i < block; ++i) result[c + i] = sum[i];
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

void accumulate(double* __restrict sum, const double* __restrict value, double weight, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += weight * value[i];
}

void rule(const RuleStep& step) {
  constexpr std::int64_t width = rule_width;
  double prediction[width] = {};
  for (std::int64_t k = 0; k < step.key_size; ++k) {
    const double* state = step.state + k * width;
    const double key = step.key[k];
    for (std::int64_t v = 0; v < width; ++v) prediction[v] += (step.decay * state[v]) * key;
  }
  double correction[width];
  for (std::int64_t v = 0; v < width; ++v) correction[v] = step.beta * (step.value[v] - prediction[v]);
  double output[width] = {};
  for (std::int64_t k = 0; k < step.key_size; ++k) {
    double* __restrict state = step.state + k * width;
    const double key = step.key[k];
    const double query = step.query[k];
    for (std::int64_t v = 0; v < width; ++v) {
      const double updated = step.decay * state[v] + correction[v] * key;
      state[v] = updated;
      output[v] += updated * query;
    }
  }
  for (std::int64_t v = 0; v < width; ++v) step.output[v] = step.scale * output[v];
}

}  // namespace

extern const Kernels QUIRE_JOIN(kernels_, QUIRE_ISA_NAME);
const Kernels QUIRE_JOIN(kernels_, QUIRE_ISA_NAME) = {QUIRE_TEXT(QUIRE_ISA_NAME), scores, softcap, weights, accumulate, rule};

}  // namespace quire::reference
