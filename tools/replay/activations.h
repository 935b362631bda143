// What the layers are fed: made from what a token is, so that equal prefixes hold equal tokens.
#pragma once

#include "trace.h"

#include <cstdint>

namespace quire::replay {

/// Heads and widths of the stack. The gated-delta layers are grouped-value (GVA): two value heads share one query and key head. The
/// attention layer is grouped-query: two query heads share one key and value head.
struct Sizes {
  static constexpr std::int64_t gdn_query_heads = 1, gdn_value_heads = 2, key = 32, value = 48;
  static constexpr std::int64_t query_heads = 2, kv_heads = 1, head = 32, head_value = 48;
  static constexpr std::int64_t gdn_output = gdn_value_heads * value, attention_output = query_heads * head_value;
  static constexpr std::int64_t state = gdn_value_heads * value * key;
};

/// A token of a draft is another token for each guess: `guess` 0 is the one that the request goes on with.
struct Token {
  TokenSource source;
  std::int64_t guess = 0;
};

/// A counter-based generator keyed by the seed: the counter is the token's stream, offset, guess and layer. Values are
/// (k + 0.5) / 32768 for whole k from -32768 to 32767, exact in float32.
class Activations {
 public:
  explicit Activations(std::uint64_t seed) : key_(seed) {}

  /// q [1, 32], k [1, 32], v [2, 48] in (-1, 1); g [2] in (0.97, 1), beta [2] in (0, 1). Layers count from 0.
  void gdn(const Token& token, int layer, float* q, float* k, float* v, float* g, float* beta) const;
  /// q [2, 32], k [1, 32], v [1, 48] in (-1, 1).
  void attention(const Token& token, float* q, float* k, float* v) const;

 private:
  template <int Words>
  void draw(const Token& token, int layer, float (&values)[2 * Words]) const;
  std::uint64_t key_;
};

}  // namespace quire::replay
