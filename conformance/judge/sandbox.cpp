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

// Spans of memory that tensors lie in, those that touch or share bytes joined.
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
  region.writable.assign(size, false);
  return region;
}

Sandbox::Sandbox(quire_op op, const void* args, std::byte fill) : call_(op, args) {
  for (const Span& span : joined_spans(call_)) regions_.push_back(copy_of(span.begin, static_cast<std::size_t>(span.end - span.begin)));
  for (const CallTensor& entry : call_.tensors()) {
    auto* original = static_cast<std::byte*>(entry.tensor->data);
    places_.push_back({&entry, original});
    if (is_empty(*entry.tensor)) continue;
    Region& region = *std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) { return r.holds(original); });
    entry.tensor->data = region.copy + (original - region.from);
    if (entry.role != TensorRole::read && !region.reserved.defined()) mark_writable(region, *entry.tensor, fill, entry.role == TensorRole::write);
  }
  for (Region& region : regions_) region.before = region.memory;
}

void Sandbox::mark_writable(Region& region, const quire_tensor& tensor, std::byte fill, bool fills) {
  const std::int64_t size = size_of(tensor);
  for_each_element(tensor, size, [&](std::byte* element) {
    const auto first = static_cast<std::size_t>(element - region.copy);
    for (std::int64_t i = 0; i < size; ++i) {
      region.writable[first + static_cast<std::size_t>(i)] = true;
      if (fills) element[i] = fill;
    }
  });
}

std::vector<std::string> Sandbox::violations() const {
  std::vector<std::string> found;
  for (const Region& region : regions_) {
    std::string_view name = "a tensor";  // that lies there, for the message
    for (const Place& place : places_) {
      if (region.holds(place.original)) {
        name = place.entry->name;
        break;
      }
    }
    const std::size_t begin = region.reserved.defined() ? 0 : region.begin();
    for (std::size_t i = 0; i < region.memory.size(); ++i) {
      const bool inside = i >= begin && i < begin + region.size;
      if ((inside && region.writable[i - begin]) || region.memory[i] == region.before[i]) continue;
      found.push_back(inside ? fmt::format("{}: byte {} was changed, which the call may not write", name, i - begin)
                             : fmt::format("{}: a byte {} its memory was changed", name, i < begin ? "before" : "behind"));
      break;
    }
  }
  return found;
}

void Sandbox::copy_back() const {
  for (const Region& region : regions_) {
    if (region.reserved.defined()) {
      for (const auto& [first, last] : used_ranges(region.copy, region.size)) std::memcpy(region.from + first, region.copy + first, last - first);
      continue;
    }
    for (std::size_t i = 0; i < region.size; ++i) {
      if (region.writable[i]) region.from[i] = region.copy[i];
    }
  }
}

}  // namespace quire::conformance
