// What is HIP's own of the runtime: names, versions, architectures.
#include "../gpu/device/devices.h"

#include <fmt/format.h>

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

// Without a device the calls leave what they are to set.
std::string driver_text() {
  int built = HIP_VERSION, driver = 0;
  ignore(hipDriverGetVersion(&driver));
  const std::string headers = fmt::format("{}.{}", built / 10000000, built / 100000 % 100);
  if (driver == 0) return fmt::format("no AMD GPU driver or device (/dev/kfd); built with HIP {}", headers);
  return fmt::format("HIP {}.{}, built with {}", driver / 10000000, driver / 100000 % 100, headers);
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
