// Shared memory and its edges. Under the thread sanitizer its stores must not be seen: they are the emulator's, not a thread's, so no
// memset, which it intercepts.
#include "shared_memory.h"

#include <cstdlib>
#include <cstring>

#include "sanitizer.h"

namespace quire::simt {
namespace {

constexpr unsigned char poison_byte = 0xff;
constexpr unsigned char edge_byte = 0xa5;

void fill(unsigned char* begin, std::int64_t bytes, unsigned char value) {
  if constexpr (thread_sanitizer) {
    for (volatile unsigned char* to = begin; to != begin + bytes; ++to) *to = value;
  } else {
    std::memset(begin, value, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

SharedMemory::~SharedMemory() { std::free(memory_); }

bool SharedMemory::resize(std::int64_t bytes) {
  if (bytes == bytes_) return true;
  std::free(memory_);
  // The address sanitizer has its own edges, around what is allocated.
  const std::int64_t beside = address_sanitizer ? 0 : edge;
  memory_ = static_cast<unsigned char*>(std::malloc(static_cast<std::size_t>(bytes + 2 * beside)));
  bytes_ = memory_ == nullptr ? -1 : bytes;
  data_ = memory_ == nullptr ? nullptr : memory_ + beside;
  return memory_ != nullptr;
}

void SharedMemory::poison() {
  fill(data_, bytes_, poison_byte);
  if constexpr (!address_sanitizer) {
    fill(data_ - edge, edge, edge_byte);
    fill(data_ + bytes_, edge, edge_byte);
  }
}

bool SharedMemory::edges_whole(std::int64_t* byte) const {
  if constexpr (address_sanitizer) return true;
  for (std::int64_t i = 0; i < edge; ++i) {
    const std::int64_t places[2] = {bytes_ + i, -1 - i};
    for (const std::int64_t place : places) {
      if (data_[place] == edge_byte) continue;
      *byte = place;
      return false;
    }
  }
  return true;
}

}  // namespace quire::simt
