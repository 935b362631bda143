// Memory of devices, and copies.
#include "memory.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "devices.h"
#include "streams.h"

namespace quire::gpu {

namespace {

// What a pool keeps of the memory that was freed: workspaces and results come again at once, and other users of the device have the rest.
constexpr std::uint64_t kept_part = 32;

VENDOR(MemPool_t) new_pool(std::int32_t device) {
  if (!vendor::has_pools || attribute(vendor::pools_supported, device) == 0) return nullptr;
  VENDOR(MemPoolProps) properties{};
  properties.allocType = VENDOR(MemAllocationTypePinned);
  properties.location.type = VENDOR(MemLocationTypeDevice);
  properties.location.id = device;
  VENDOR(MemPool_t) pool = nullptr;
  VENDOR_CALL(MemPoolCreate, &pool, &properties);
  std::uint64_t kept = static_cast<std::uint64_t>(runtime::limits(device).memory_bytes) / kept_part;
  VENDOR_CALL(MemPoolSetAttribute, pool, VENDOR(MemPoolAttrReleaseThreshold), &kept);
  return pool;
}

void require_memory(VENDOR(Error_t) status, const char* call, std::int32_t device, std::size_t bytes) {
  if (status != VENDOR(Success)) require(status, fmt::format("{} of {} bytes on device {}", call, bytes, device).c_str());
}

}  // namespace

VENDOR(MemPool_t) pool_of(std::int32_t device) {
  // They live as long as the process: at its end the runtime may be gone before this is.
  static std::mutex& mutex = *new std::mutex;
  static auto& pools = *new std::map<std::int32_t, VENDOR(MemPool_t)>;
  const std::lock_guard lock(mutex);
  const auto found = pools.find(device);
  if (found != pools.end()) return found->second;
  return pools.emplace(device, new_pool(device)).first->second;
}

void connect(std::int32_t device, std::int32_t other) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::set<std::pair<std::int32_t, std::int32_t>>;
  const std::lock_guard lock(mutex);
  if (!known.insert({device, other}).second) return;
  int can = 0;
  VENDOR_CALL(DeviceCanAccessPeer, &can, device, other);
  if (can == 0) return;
  const CurrentDevice current(device);
  // An error, also that it has been enabled before, is no reason not to copy.
  ignore(VENDOR(DeviceEnablePeerAccess)(other, 0));
  if (VENDOR(MemPool_t) pool = pool_of(other); pool != nullptr) {
    VENDOR(MemAccessDesc) access{};
    access.location.type = VENDOR(MemLocationTypeDevice);
    access.location.id = device;
    access.flags = VENDOR(MemAccessFlagsProtReadWrite);
    ignore(VENDOR(MemPoolSetAccess)(pool, &access, 1));
  }
}

namespace runtime {

void* allocate(std::int32_t id, quire_stream* stream, std::size_t bytes) {
  Work work(id, stream);
  void* data = nullptr;
  const VENDOR(MemPool_t) pool = pool_of(id);
  if (pool == nullptr) {
    require_memory(VENDOR(Malloc)(&data, bytes), VENDOR_TEXT(Malloc), id, bytes);
    return data;
  }
  VENDOR(Error_t) status = VENDOR(MallocFromPoolAsync)(&data, bytes, pool, work.handle());
  if (status == VENDOR(ErrorMemoryAllocation)) {
    // What the pool keeps may be what is missing.
    ignore(status);
    ignore(VENDOR(StreamSynchronize)(work.handle()));
    ignore(VENDOR(MemPoolTrimTo)(pool, 0));
    status = VENDOR(MallocFromPoolAsync)(&data, bytes, pool, work.handle());
  }
  require_memory(status, VENDOR_TEXT(MallocFromPoolAsync), id, bytes);
  work.finish();
  return data;
}

void release(std::int32_t id, quire_stream* stream, void* data) {
  Work work(id, stream);
  if (pool_of(id) == nullptr) {
    // Without a pool the host waits for the stream: there is no other end to wait for.
    if (stream != nullptr) ignore(VENDOR(StreamSynchronize)(work.handle()));
    VENDOR_CALL(Free, data);
    return;
  }
  VENDOR_CALL(FreeAsync, data, work.handle());
  work.finish();
}

void copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, std::size_t bytes) {
  const bool is_to_host = to_device.type == QUIRE_DEVICE_CPU, is_from_host = from_device.type == QUIRE_DEVICE_CPU;
  if (stream == nullptr && is_to_host && is_from_host) {
    std::memmove(to, from, bytes);
    return;
  }
  Work work(stream != nullptr ? stream->device : is_to_host ? from_device.id : to_device.id, stream);
  if (!is_to_host && !is_from_host && to_device.id != from_device.id) {
    connect(to_device.id, from_device.id);
    connect(from_device.id, to_device.id);
    VENDOR_CALL(MemcpyPeerAsync, to, to_device.id, from, from_device.id, bytes, work.handle());
  } else {
    const auto kind = is_to_host ? (is_from_host ? VENDOR(MemcpyHostToHost) : VENDOR(MemcpyDeviceToHost))
                                 : (is_from_host ? VENDOR(MemcpyHostToDevice) : VENDOR(MemcpyDeviceToDevice));
    VENDOR_CALL(MemcpyAsync, to, from, bytes, kind, work.handle());
  }
  work.finish();
}

}  // namespace runtime
}  // namespace quire::gpu
