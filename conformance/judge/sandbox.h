// A call on memory of its own: guard zones around every tensor, poison in what it must not read, a pattern in what it must write.
#pragma once

#include <quire/call.h>
#include <quire/staging.h>
#include <quire/tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quire::conformance {

/// Copies a call's memory region by region (tensors that share memory stay together). Outputs that the call must write whole hold `fill`.
class Sandbox {
 public:
  Sandbox(quire_op op, const void* args, std::byte fill);
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  const Call& call() const { return call_; }
  const void* args() const { return call_.args(); }
  /// The sandbox's memory, guard zones included where they can be read.
  std::vector<MemorySpan> spans();
  /// What was changed that the call may not change, by the names of the tensors that lie there: read-only tensors, stride gaps, guard zones;
  /// empty when all is intact. One line per piece of memory, about the first byte changed.
  std::vector<std::string> violations() const;
  /// Copies the elements of what the call changes back to the memory it was made from.
  void copy_back() const;

 private:
  struct Region {
    std::byte* from;  // in the caller's memory
    std::size_t size = 0;
    std::byte* copy = nullptr;
    // Where the copy lies between guard zones in memory of its own, with what that held before and which bytes of the copy may change.
    std::vector<std::byte> memory, before;
    std::vector<std::uint8_t> writable;  // empty where none may
    // Where it is reserved memory (pools past 2^31 elements), used pages alone are copied, and guard pages end a process that leaves it.
    Tensor reserved;

    bool is_reserved() const { return reserved.defined(); }
    bool holds(const std::byte* address) const { return address >= from && address < from + size; }
    std::size_t begin() const { return static_cast<std::size_t>(copy - memory.data()); }
  };
  static Region copy_of(std::byte* begin, std::size_t size);
  static void mark_writable(Region& region, const quire_tensor& tensor, std::byte fill, bool fills);
  std::string violation_of(const Region& region) const;
  std::string reserved_violation_of(const Region& region) const;
  std::string names_at(const std::byte* original) const;

  Call call_;
  std::vector<Region> regions_;
  // Where a tensor lay: its first byte and the one behind its last.
  struct Place {
    const CallTensor* entry;
    std::byte *begin, *end;
  };
  std::vector<Place> places_;
};

/// Calls body(address) for every element of a tensor in row-major order.
template <typename Body>
void for_each_element(const quire_tensor& tensor, std::int64_t element_size, const Body& body) {
  std::int64_t count = 1;
  for (std::int32_t a = 0; a < tensor.rank; ++a) count *= tensor.shape[a];
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.rank));
  std::int64_t offset = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    body(static_cast<std::byte*>(tensor.data) + offset * element_size);
    for (std::int32_t a = tensor.rank; a-- > 0;) {
      const auto axis = static_cast<std::size_t>(a);
      offset += tensor.strides[a];
      if (++index[axis] < tensor.shape[a]) break;
      offset -= index[axis] * tensor.strides[a];
      index[axis] = 0;
    }
  }
}

}  // namespace quire::conformance
