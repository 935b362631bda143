// Philox 4x32 with 10 rounds (Salmon et al., 2011): random words of a counter and a key, the same on every machine and in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace quire {

/// N counters at once, word by word: words[w][n] is word w of counter n, before and after. Loops over n that compilers vectorise.
template <std::size_t N>
inline void philox(std::array<std::array<std::uint32_t, N>, 4>& words, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t n = 0; n < N; ++n) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * words[0][n];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * words[2][n];
      words[0][n] = static_cast<std::uint32_t>(product1 >> 32) ^ words[1][n] ^ key0;
      words[1][n] = static_cast<std::uint32_t>(product1);
      words[2][n] = static_cast<std::uint32_t>(product0 >> 32) ^ words[3][n] ^ key1;
      words[3][n] = static_cast<std::uint32_t>(product0);
    }
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

/// Four random words of one counter.
inline std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter, std::uint64_t key) {
  std::array<std::array<std::uint32_t, 1>, 4> words = {{{counter[0]}, {counter[1]}, {counter[2]}, {counter[3]}}};
  philox<1>(words, key);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

}  // namespace quire
