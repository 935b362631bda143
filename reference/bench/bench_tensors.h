// Tensors that the benchmarks run on.
#pragma once

#include <quire/tensor.h>

#include <cstdint>
#include <utility>

namespace quire::bench {

/// A fixed, cheap sequence of values in [-1, 1); speed does not depend on them.
inline Tensor filled(Shape shape) {
  Tensor tensor = Tensor::empty(DType::f32, std::move(shape));
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    state = state * 1664525U + 1013904223U;
    tensor.data<float>()[i] = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;
  }
  return tensor;
}

}  // namespace quire::bench
