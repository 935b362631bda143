// Reserved memory.
#include "reserved.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace quire::conformance {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 40;

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  return size;
}

}  // namespace

Tensor reserve_tensor(DType dtype, Shape shape, std::string_view argument) {
  const std::int64_t count = count_elements(shape, argument);
  if (count > most_bytes / size_of(dtype)) reject(argument, fmt::format("{} elements of {}", count, name(dtype)), "at most 2^40 bytes");
  const std::size_t bytes = (static_cast<std::size_t>(count * size_of(dtype)) / page_size() + 1) * page_size();
  // A page that no one may touch on either side.
  const std::size_t whole = bytes + 2 * page_size();
  void* memory = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorCode::unavailable, std::string(argument), fmt::format("{}: {} bytes can't be reserved", argument, bytes));
  std::shared_ptr<void> owner(memory, [whole](void* p) { munmap(p, whole); });
  std::byte* data = static_cast<std::byte*>(memory) + page_size();
  if (mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0) {
    throw Error(ErrorCode::unavailable, std::string(argument), fmt::format("{}: {} bytes can't be reserved", argument, bytes));
  }
  return Tensor::share(std::move(owner), data, dtype, std::move(shape));
}

std::vector<std::pair<std::size_t, std::size_t>> used_ranges(const std::byte* memory, std::size_t bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  const std::size_t page = page_size();
  const std::size_t lead = reinterpret_cast<std::uintptr_t>(memory) % page;
  std::vector<unsigned char> resident((lead + bytes + page - 1) / page);
  if (mincore(const_cast<std::byte*>(memory) - lead, lead + bytes, resident.data()) != 0) return {{0, bytes}};
  for (std::size_t p = 0; p < resident.size(); ++p) {
    if ((resident[p] & 1U) == 0) continue;
    const std::size_t begin = p == 0 ? 0 : p * page - lead;
    const std::size_t end = std::min((p + 1) * page - lead, bytes);
    if (!ranges.empty() && ranges.back().second == begin) ranges.back().second = end;
    else ranges.emplace_back(begin, end);
  }
  return ranges;
}

}  // namespace quire::conformance
