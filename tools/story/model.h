// The language model: a llama2.c checkpoint, its dense layers, and attention through quire::attend
// alone.
#pragma once

#include <quire/ops.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace quire::story {

using Token = std::int32_t;
/// One number per token of the vocabulary.
using Logits = std::vector<float>;

/// What a checkpoint's header says.
struct ModelSize {
  std::int64_t dim = 0;     ///< width of a token's vector
  std::int64_t hidden = 0;  ///< width inside the feed-forward layers
  std::int64_t layers = 0;
  std::int64_t heads = 0;     ///< query heads
  std::int64_t kv_heads = 0;  ///< key and value heads
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;  ///< positions
  bool own_classifier =
      false;  ///< the classifier has weights of its own, the embedding's are not used twice

  std::int64_t head_size() const { return dim / heads; }
  std::int64_t kv_dim() const { return head_size() * kv_heads; }
};

constexpr std::size_t checkpoint_header_bytes = 28;

/// Reads the header (7 int32, at least `checkpoint_header_bytes` bytes). Raises std::runtime_error
/// for a model that can't be.
ModelSize parse_header(std::span<const std::byte> bytes);
/// Bytes of the whole file; raises std::runtime_error where they overflow.
std::uint64_t checkpoint_bytes(const ModelSize& size);

/// The pools of keys and values, one of each per layer: f32 [slots, kv_heads, head_size].
struct Caches {
  Caches() = default;
  /// Every slot holds NaN, so that one read before it was written shows (C8).
  Caches(const ModelSize& size, std::int64_t slots);
  std::vector<Tensor> keys, values;
};

/// Immutable after construction. All arithmetic but attention's is float32, token by token, so that
/// a token's result does not depend on the tokens that are evaluated with it.
class Model {
 public:
  /// The bytes of a checkpoint. Raises std::runtime_error, one line, for any that is not exactly
  /// one.
  static Model parse(std::span<const std::byte> bytes);
  /// Checks the header against the file's size before reading the rest.
  static Model load(const std::string& path);

  const ModelSize& size() const { return size_; }

  /// Evaluates the tokens [B * S] of an index whose pools are `caches` (not used on whole and
  /// packed indices) and returns the logits at `places` (numbers b * S + i). Tokens at padded
  /// places are not read.
  std::vector<Logits> evaluate(const Index& index, std::span<const Token> tokens, Caches& caches,
                               std::span<const std::int64_t> places, const On& on) const;

 private:
  struct Layer {
    const float *attention_norm, *query, *key, *value, *output, *feed_norm, *gate, *down, *up;
  };
  Model() = default;
  void rotate(float* heads, std::int64_t count, std::int64_t position) const;

  ModelSize size_;
  std::vector<float> weights_;
  std::vector<Layer> layers_;
  const float* embedding_ = nullptr;
  const float* final_norm_ = nullptr;
  const float* classifier_ = nullptr;
  std::vector<float> rotations_;  // [context, head_size / 2, (cos, sin)]
};

}  // namespace quire::story
