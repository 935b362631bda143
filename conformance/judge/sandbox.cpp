// A call on memory of its own.
#include "sandbox.h"

#include "case/reserved.h"

#include <quire/dtype.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace quire::conformance {

namespace {

// NaN in every floating dtype, far outside every pool as an integer.
constexpr std::byte poison{0xFF};
constexpr std::size_t guard = 256;
constexpr std::uintptr_t alignment = 64;

std::int64_t size_of(const quire_tensor& tensor) { return quire::size_of(static_cast<DType>(tensor.dtype)); }

bool is_empty(const quire_tensor& tensor) {
  return std::any_of(tensor.shape, tensor.shape + tensor.rank, [](std::int64_t axis) { return axis == 0; });
}

std::size_t span_bytes(const quire_tensor& tensor) {
  std::int64_t last = 0;
  for (std::int32_t a = 0; a < tensor.rank; ++a) last += (tensor.shape[a] - 1) * tensor.strides[a];
  return static_cast<std::size_t>((last + 1) * size_of(tensor));
}

struct Span {
  std::byte* begin;
  std::byte* end;
};

// Spans of memory that tensors lie in, those that share bytes joined.
std::vector<Span> joined_spans(const Call& call) {
  std::vector<Span> spans;
  for (const CallTensor& entry : call.tensors()) {
    if (is_empty(*entry.tensor)) continue;
    auto* begin = static_cast<std::byte*>(entry.tensor->data);
    spans.push_back({begin, begin + span_bytes(*entry.tensor)});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> joined;
  for (const Span& span : spans) {
    if (!joined.empty() && span.begin < joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

}  // namespace

Sandbox::Region Sandbox::copy_of(std::byte* begin, std::size_t size) {
  Region region;
  region.from = begin;
  region.size = size;
  if (is_reserved_size(size)) {
    region.reserved = reserve_tensor(DType::u8, {static_cast<std::int64_t>(size)}, "pool");
    region.copy = region.reserved.raw();
    for (const auto& [first, last] : used_ranges(begin, size)) std::memcpy(region.copy + first, begin + first, last - first);
    return region;
  }
  region.memory.assign(size + 2 * guard + alignment, poison);
  // As aligned as the caller's memory, no more: a backend may not count on more than it is given.
  const auto start = reinterpret_cast<std::uintptr_t>(region.memory.data()) + guard;
  const auto wanted = reinterpret_cast<std::uintptr_t>(begin) % alignment;
  region.copy = region.memory.data() + guard + (wanted + alignment - start % alignment) % alignment;
  std::memcpy(region.copy, begin, size);
  return region;
}

Sandbox::Sandbox(quire_op op, const void* args, std::byte fill) : call_(op, args) {
  for (const Span& span : joined_spans(call_)) regions_.push_back(copy_of(span.begin, static_cast<std::size_t>(span.end - span.begin)));
  for (const CallTensor& entry : call_.tensors()) {
    if (is_empty(*entry.tensor)) continue;
    auto* original = static_cast<std::byte*>(entry.tensor->data);
    places_.push_back({&entry, original, original + span_bytes(*entry.tensor)});
    Region& region = *std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) { return r.holds(original); });
    entry.tensor->data = region.copy + (original - region.from);
    if (entry.role == TensorRole::read) continue;
    if (region.writable.empty()) region.writable.assign(region.is_reserved() ? 1 : region.size, 0);
    if (!region.is_reserved()) mark_writable(region, *entry.tensor, fill, entry.role == TensorRole::write);
  }
  for (Region& region : regions_) region.before = region.memory;
}

void Sandbox::mark_writable(Region& region, const quire_tensor& tensor, std::byte fill, bool fills) {
  const std::int64_t size = size_of(tensor);
  for_each_element(tensor, size, [&](std::byte* element) {
    const auto first = static_cast<std::size_t>(element - region.copy);
    for (std::int64_t i = 0; i < size; ++i) {
      region.writable[first + static_cast<std::size_t>(i)] = 1;
      if (fills) element[i] = fill;
    }
  });
}

std::vector<MemorySpan> Sandbox::spans() {
  std::vector<MemorySpan> spans;
  for (Region& region : regions_) {
    std::byte* const begin = region.is_reserved() ? region.copy : region.memory.data();
    spans.push_back({begin, begin + (region.is_reserved() ? region.size : region.memory.size())});
  }
  return spans;
}

std::vector<std::string> Sandbox::violations() const {
  std::vector<std::string> found;
  for (const Region& region : regions_) {
    std::string text = region.is_reserved() ? reserved_violation_of(region) : violation_of(region);
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

std::string Sandbox::violation_of(const Region& region) const {
  const std::size_t begin = region.begin();
  const std::size_t end = begin + region.size;
  // The first byte in [from, to) that differs from what was there.
  const auto changed = [&](std::size_t from, std::size_t to) {
    const std::byte *now = region.memory.data(), *then = region.before.data();
    return static_cast<std::size_t>(std::mismatch(now + from, now + to, then + from).first - now);
  };
  const auto is_same = [&](std::size_t from, std::size_t to) { return std::memcmp(region.memory.data() + from, region.before.data() + from, to - from) == 0; };
  if (!is_same(0, begin)) return fmt::format("{}: a byte before its memory was changed", names_at(region.from));
  if (region.writable.empty() && !is_same(begin, end)) {
    const std::size_t n = changed(begin, end) - begin;
    return fmt::format("{}: byte {} of its memory was changed, which the call may not write", names_at(region.from + n), n);
  }
  for (std::size_t n = 0; n < region.writable.size(); ++n) {
    if (region.writable[n] != 0 || region.memory[begin + n] == region.before[begin + n]) continue;
    return fmt::format("{}: byte {} of its memory was changed, which the call may not write", names_at(region.from + n), n);
  }
  if (!is_same(end, region.memory.size())) return fmt::format("{}: a byte behind its memory was changed", names_at(region.from + region.size - 1));
  return {};
}

// A reserved pool is dense, so what is in it is either all read-only or all judged element by element.
std::string Sandbox::reserved_violation_of(const Region& region) const {
  if (!region.writable.empty()) return {};
  for (const auto& [first, last] : used_ranges(region.copy, region.size)) {
    if (std::memcmp(region.copy + first, region.from + first, last - first) == 0) continue;
    const auto n = static_cast<std::size_t>(std::mismatch(region.copy + first, region.copy + last, region.from + first).first - region.copy);
    return fmt::format("{}: byte {} of its memory was changed, which the call may not write", names_at(region.from + n), n);
  }
  return {};
}

std::string Sandbox::names_at(const std::byte* original) const {
  std::vector<std::string_view> names;
  for (const Place& place : places_) {
    if (original >= place.begin && original < place.end) names.push_back(place.entry->name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

void Sandbox::copy_back() const {
  for (const Region& region : regions_) {
    if (region.writable.empty()) continue;
    if (region.is_reserved()) {
      for (const auto& [first, last] : used_ranges(region.copy, region.size)) std::memcpy(region.from + first, region.copy + first, last - first);
      continue;
    }
    for (std::size_t i = 0; i < region.size; ++i) {
      if (region.writable[i] != 0) region.from[i] = region.copy[i];
    }
  }
}

}  // namespace quire::conformance
