// What is HIP's own of the runtime: names, versions, architectures.
#include "../gpu/device/devices.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace quire::gpu {

const char* architectures() { return QUIRE_ARCHITECTURES; }

// "gfx90a" of "gfx90a:sramecc+:xnack-"; the code is built for either setting of those.
std::string architecture_of(std::int32_t id) {
  hipDeviceProp_t properties{};
  VENDOR_CALL(GetDeviceProperties, &properties, id);
  const std::string_view full = properties.gcnArchName;
  return std::string(full.substr(0, full.find(':')));
}

// Code for one architecture runs on no other.
bool has_code_for(std::int32_t id) { return fmt::format(" {} ", architectures()).find(fmt::format(" {} ", architecture_of(id))) != std::string::npos; }

namespace runtime {

namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 10000000, version / 100000 % 100); }

// The runtime is a library of the machine's; the driver is the kernel's.
std::string driver_text() {
  int found = 0;
  ignore(hipRuntimeGetVersion(&found));
  const char* const driver = access("/dev/kfd", F_OK) == 0 ? "" : "no AMD GPU driver (/dev/kfd is not there); ";
  return fmt::format("{}HIP runtime {}, built with {}", driver, version_text(found), version_text(HIP_VERSION));
}

}  // namespace

const char* name() { return "hip"; }
const char* description() { return "AMD GPUs; kernels for " QUIRE_ARCHITECTURES; }
const char* driver() {
  static const std::string text = driver_text();
  return text.c_str();
}
std::int32_t rank() { return 200; }
std::int32_t device_type() { return QUIRE_DEVICE_ROCM; }

}  // namespace runtime
}  // namespace quire::gpu
