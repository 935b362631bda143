// A tensor of the ABI over borrowed memory.
#pragma once

#include <quire/tensor.h>

#include <cstdint>
#include <vector>

namespace quire::conformance {

struct View {
  View(void* data, quire_dtype dtype, std::vector<std::int64_t> sizes) : View(data, dtype, sizes, quire::dense_strides(sizes)) {}
  View(void* data, quire_dtype dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> steps)
      : shape(std::move(sizes)), strides(std::move(steps)) {
    abi = {sizeof abi, data, shape.data(), strides.data(), static_cast<std::int32_t>(shape.size()), dtype, {QUIRE_DEVICE_CPU, 0}};
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  std::vector<std::int64_t> shape, strides;
  quire_tensor abi{};
};

}  // namespace quire::conformance
