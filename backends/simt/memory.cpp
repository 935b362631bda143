// The registry of allocations.
#include "memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "../gpu/runtime.h"
#include "sanitizer.h"

namespace quire::simt {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t large = std::size_t{256} * 1024;
// Of an address space of 47 bits.
constexpr std::size_t most_bytes = std::size_t{1} << 46;

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  bool released = false;
  void* mapping = nullptr;  ///< of a large one; null: from malloc
  std::size_t mapping_bytes = 0;
  std::size_t forbidden = 0;  ///< bytes after the last, before the page that traps
};

struct Registry {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> allocations;  ///< by first byte; disjoint

  /// The last allocation that begins at or before an address; end() where there is none.
  auto before(std::uintptr_t address) {
    auto found = allocations.upper_bound(address);
    return found == allocations.begin() ? allocations.end() : --found;
  }
};

// Never destroyed: a stream's thread may outlive what the process destroys at its end.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

std::uintptr_t number(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

[[noreturn]] void reject(std::string message) { throw gpu::Failure{QUIRE_INVALID_ARGUMENT, std::move(message)}; }

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// It ends within 256 bytes of a page that traps.
void* map_large(std::size_t bytes, Allocation& allocation) {
  const std::size_t page = page_bytes();
  const std::size_t usable = (bytes + page - 1) / page * page;
  allocation.mapping_bytes = usable + 2 * page;
  void* memory = mmap(nullptr, allocation.mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  allocation.mapping = memory;
  char* const first = static_cast<char*>(memory) + page;
  if (mprotect(first, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, allocation.mapping_bytes);
    return nullptr;
  }
  char* const data = first + (usable - bytes) / alignment * alignment;
  allocation.forbidden = static_cast<std::size_t>(first + usable - (data + bytes));
  forbid(data + bytes, allocation.forbidden);
  return data;
}

void* allocate_small(std::size_t bytes) {
  // Under the address sanitizer the size must be exact, for the edges to be.
  void* data = nullptr;
  if (posix_memalign(&data, alignment, bytes == 0 ? 1 : bytes) != 0) return nullptr;
  std::memset(data, 0xff, bytes);
  return data;
}

void give_back(void* data, const Allocation& allocation) {
  if (allocation.mapping == nullptr) return std::free(data);
  allow(static_cast<char*>(data) + allocation.bytes, allocation.forbidden);
  munmap(allocation.mapping, allocation.mapping_bytes);
}

std::string words(const Allocation& allocation, std::uintptr_t first) {
  return fmt::format("{} bytes at {:#x}{}", allocation.bytes, first, allocation.released ? ", freed" : "");
}

}  // namespace

std::int64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages < 0 ? 0 : static_cast<std::int64_t>(pages) * static_cast<std::int64_t>(page_bytes());
}

void* allocate_memory(int device, std::size_t bytes) {
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.device = device;
  void* data = nullptr;
  if (bytes <= most_bytes) data = bytes < large ? allocate_small(bytes) : map_large(bytes, allocation);
  if (data == nullptr) throw gpu::Failure{QUIRE_UNAVAILABLE, fmt::format("device {}: no memory for {} bytes", device, bytes)};
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.allocations.insert_or_assign(number(data), allocation);
  return data;
}

void release_memory(int device, void* data) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocations.find(number(data));
  if (found == all.allocations.end())
    reject(fmt::format("free: no allocation begins at {:#x}; it was freed before, or never allocated", number(data)));
  Allocation& allocation = found->second;
  if (allocation.released) reject(fmt::format("free: the allocation at {:#x} was freed before", number(data)));
  if (allocation.device != device)
    reject(fmt::format("free: the allocation at {:#x} is of device {}, not of device {}", number(data), allocation.device, device));
  allocation.released = true;
}

void free_released(void* data) {
  Allocation allocation;
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.allocations.find(number(data));
    allocation = found->second;
    all.allocations.erase(found);
  }
  give_back(data, allocation);
}

void require_memory(const char* what, quire_device device, const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  if (data == nullptr) reject(fmt::format("{}: null with {} bytes", what, bytes));
  const std::uintptr_t first = number(data);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const bool host = device.type == QUIRE_DEVICE_CPU;
  const auto name = host ? std::string("the host") : fmt::format("device {}", device.id);
  const auto found = all.before(first);
  const bool inside = found != all.allocations.end() && first - found->first < (found->second.bytes == 0 ? 1 : found->second.bytes);
  if (host) {
    const auto next = all.allocations.upper_bound(first);
    if (inside) reject(fmt::format("{}: {:#x} is not memory of the host but of device {}", what, first, found->second.device));
    if (next != all.allocations.end() && next->first - first < bytes)
      reject(fmt::format("{}: {} bytes at {:#x} reach into memory of device {}", what, bytes, first, next->second.device));
    return;
  }
  if (!inside) reject(fmt::format("{}: {:#x} is not memory of {}", what, first, name));
  const Allocation& allocation = found->second;
  if (allocation.device != device.id)
    reject(fmt::format("{}: {:#x} is memory of device {}, not of {}", what, first, allocation.device, name));
  if (allocation.released) reject(fmt::format("{}: {:#x} is in memory that was freed: {}", what, first, words(allocation, found->first)));
  if (bytes > allocation.bytes - (first - found->first))
    reject(fmt::format("{}: {} bytes at {:#x} reach past their allocation of {}", what, bytes, first, words(allocation, found->first)));
}

}  // namespace quire::simt
