// Devices: how many, and what each can do.
#include "devices.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>

namespace quire::gpu {

int attribute(vendor::Attribute name, std::int32_t id) {
  int value = 0;
  VENDOR_CALL(DeviceGetAttribute, &value, name, id);
  return value;
}

namespace runtime {

namespace {

std::int32_t count_devices() {
  int count = 0;
  try {
    VENDOR_CALL(GetDeviceCount, &count);
  } catch (const Failure& failure) {
    throw Failure{QUIRE_UNAVAILABLE, fmt::format("{}; {}", failure.message, driver())};
  }
  if (count == 0) throw Failure{QUIRE_UNAVAILABLE, fmt::format("no device; {}", driver())};
  // A device without code here would fail every call; where there is no other, the backend is not available.
  for (std::int32_t id = 0; id < count; ++id) {
    if (has_code_for(id)) return count;
  }
  throw Failure{QUIRE_UNAVAILABLE, fmt::format("no code for {} here; built for {}", architecture_of(0), architectures())};
}

}  // namespace

std::int32_t device_count() {
  // The runtimes number devices once per process; a failure is tried again.
  static std::atomic<std::int32_t> known{0};
  std::int32_t count = known.load(std::memory_order_relaxed);
  if (count == 0) known.store(count = count_devices(), std::memory_order_relaxed);
  return count;
}

const DeviceLimits& limits(std::int32_t id) {
  static std::mutex mutex;
  static std::map<std::int32_t, DeviceLimits> known;  // its references stay valid
  const std::lock_guard lock(mutex);
  const auto found = known.find(id);
  if (found != known.end()) return found->second;
  if (!has_code_for(id)) {
    throw Failure{QUIRE_UNAVAILABLE, fmt::format("device {}: no code for {} here; built for {}", id, architecture_of(id), architectures())};
  }
  vendor::Properties properties{};
  VENDOR_CALL(GetDeviceProperties, &properties, id);
  DeviceLimits limits;
  limits.name = fmt::format("{} ({})", properties.name, architecture_of(id));
  limits.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  limits.warp_width = properties.warpSize;  // the device's: on the host HIP's own constant is 64 for every device
  limits.shared_bytes = static_cast<std::int64_t>(vendor::shared_bytes(properties));
  limits.blocks = properties.maxGridSize[0];
  return known.emplace(id, std::move(limits)).first->second;
}

}  // namespace runtime
}  // namespace quire::gpu
