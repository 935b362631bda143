// A hash of bits: equal bits give equal hashes, and a changed bit another one. Not for hostile input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quire::replay {

class BitHash {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const unsigned char*>(data);
    for (; bytes >= 32; bytes -= 32, from += 32) {
      std::array<std::uint64_t, 4> words;
      std::memcpy(words.data(), from, 32);
      // Each step is one to one in the word and in the lane.
      for (std::size_t i = 0; i < 4; ++i) lanes_[i] = (lanes_[i] ^ words[i]) * 0x9E3779B97F4A7C15U;
    }
    for (; bytes > 0; --bytes, ++from) lanes_[0] = (lanes_[0] ^ *from) * 0x9E3779B97F4A7C15U;
    for (std::uint64_t& lane : lanes_) lane ^= lane >> 31;
  }
  std::uint64_t value() const {
    std::uint64_t mixed = 0;
    for (const std::uint64_t lane : lanes_) {
      mixed = (mixed ^ lane) * 0xBF58476D1CE4E5B9U;
      mixed ^= mixed >> 29;
    }
    return mixed;
  }

 private:
  std::array<std::uint64_t, 4> lanes_ = {1, 2, 3, 4};
};

}  // namespace quire::replay
