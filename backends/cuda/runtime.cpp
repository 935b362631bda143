// What is CUDA's own of the runtime: names, versions, architectures.
#include "../gpu/device/devices.h"

#include <fmt/format.h>

#include "architectures.h"

namespace quire::gpu {

const char* architectures() { return QUIRE_ARCHITECTURES; }

bool has_code_for(std::int32_t id) {
  return runs_on(architectures(), attribute(cudaDevAttrComputeCapabilityMajor, id), attribute(cudaDevAttrComputeCapabilityMinor, id));
}

std::string architecture_of(std::int32_t id) {
  return fmt::format("sm_{}{}", attribute(cudaDevAttrComputeCapabilityMajor, id), attribute(cudaDevAttrComputeCapabilityMinor, id));
}

namespace runtime {

namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Without a driver the calls leave what they are to set.
std::string driver_text() {
  int built = 0, driver = 0;
  ignore(cudaRuntimeGetVersion(&built));
  ignore(cudaDriverGetVersion(&driver));
  if (driver == 0) return fmt::format("no CUDA driver (libcuda.so.1 is not there); built with runtime {}", version_text(built));
  return fmt::format("CUDA driver {}, runtime {}", version_text(driver), version_text(built));
}

}  // namespace

const char* name() { return "cuda"; }
const char* description() { return "NVIDIA GPUs; kernels for " QUIRE_ARCHITECTURES; }
const char* driver() {
  static const std::string text = driver_text();
  return text.c_str();
}
std::int32_t rank() { return 200; }
std::int32_t device_type() { return QUIRE_DEVICE_CUDA; }

}  // namespace runtime
}  // namespace quire::gpu
