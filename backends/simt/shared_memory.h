// A block's shared memory: of exactly the launch's size, poisoned at the block's start, its edges watched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire::simt {

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Makes it `bytes` large. False where there is no memory.
  bool resize(std::int64_t bytes);
  /// Fills it with 0xFF: a float read before it is written is a NaN, an index -1.
  void poison();
  void* data() const { return data_; }
  /// Whether nothing was stored beside it since `poison`; else *byte is the place, counted from its first byte. The address sanitizer sees
  /// loads too and names their line, so in its build nothing is watched here.
  bool edges_whole(std::int64_t* byte) const;

 private:
  static constexpr std::int64_t edge = 64;

  unsigned char* memory_ = nullptr;
  unsigned char* data_ = nullptr;
  std::int64_t bytes_ = -1;
};

}  // namespace quire::simt
