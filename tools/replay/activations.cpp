// Activations from Philox words, two values a word.
#include "activations.h"

#include "philox.h"

#include <algorithm>

namespace quire::replay {

namespace {

constexpr int attention_layer = 255;

template <std::int64_t Count>
void take(const float*& from, float* to) {
  std::copy_n(from, Count, to);
  from += Count;
}

}  // namespace

template <int Words>
void Activations::draw(const Token& token, int layer, float (&values)[2 * Words]) const {
  constexpr std::size_t together = 8;
  static_assert(Words % (4 * together) == 0 && Words / 4 <= 256);
  for (int first = 0; first < Words / 4; first += static_cast<int>(together)) {
    std::array<std::array<std::uint32_t, together>, 4> words;
    for (std::size_t n = 0; n < together; ++n) {
      words[0][n] = static_cast<std::uint32_t>(token.source.offset);
      words[1][n] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(n) + (static_cast<std::uint32_t>(layer) << 8) +
                    (static_cast<std::uint32_t>(token.guess) << 16);
      words[2][n] = static_cast<std::uint32_t>(token.source.stream);
      words[3][n] = static_cast<std::uint32_t>(token.source.stream >> 32) | (token.source.is_own ? 0x80000000U : 0U);
    }
    philox<together>(words, key_);
    float* to = values + 8 * first;
    for (std::size_t w = 0; w < 4; ++w) {
      for (std::size_t n = 0; n < together; ++n) {
        const std::uint32_t word = words[w][n];
        to[2 * (w * together + n)] = (static_cast<float>(word & 0xFFFF) - 32767.5F) / 32768.0F;
        to[2 * (w * together + n) + 1] = (static_cast<float>(word >> 16) - 32767.5F) / 32768.0F;
      }
    }
  }
}

void Activations::gdn(const Token& token, int layer, float* q, float* k, float* v, float* g, float* beta) const {
  float values[192];
  draw<96>(token, layer, values);
  const float* from = values;
  take<Sizes::key>(from, q);
  take<Sizes::key>(from, k);
  take<Sizes::gdn_output>(from, v);
  take<Sizes::gdn_value_heads>(from, g);
  take<Sizes::gdn_value_heads>(from, beta);
  for (std::int64_t h = 0; h < Sizes::gdn_value_heads; ++h) {
    g[h] = 0.985F + 0.015F * g[h];
    beta[h] = 0.5F + 0.5F * beta[h];
  }
}

void Activations::attention(const Token& token, float* q, float* k, float* v) const {
  float values[192];
  draw<96>(token, attention_layer, values);
  const float* from = values;
  take<Sizes::query_heads * Sizes::head>(from, q);
  take<Sizes::head>(from, k);
  take<Sizes::head_value>(from, v);
}

}  // namespace quire::replay
