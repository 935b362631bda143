// One head of the gated delta rule in float32: its inputs, its state, and one token or one chunk at a time (laws E1-E3, E5).
#pragma once

#include "arithmetic.h"

#include <vector>

namespace quire::conformance::honest {

/// E1's tensors, shared by prefill (tokens [T]), decode and verify (tokens [B, S]).
struct RuleTensors {
  Rows q, k, v, g, beta, A_log, a, dt_bias, b, output;
  float scale = 1;
  bool use_qk_l2norm = false;
  int lead = 1;  ///< axes before the heads

  std::int64_t key_size() const { return q.size(lead + 1); }
  std::int64_t value_size() const { return v.size(lead + 1); }
  std::int64_t heads() const { return output.size(lead); }
};

template <typename Args>
RuleTensors rule_tensors(const Args& args, int lead, const Setting& setting) {
  RuleTensors tensors;
  tensors.q = Rows(args.q, setting);
  tensors.k = Rows(args.k, setting);
  tensors.v = Rows(args.v, setting);
  tensors.g = Rows(args.g, setting);
  tensors.beta = Rows(args.beta, setting);
  tensors.output = Rows(args.output, setting);
  tensors.scale = static_cast<float>(args.scale);
  tensors.use_qk_l2norm = args.use_qk_l2norm != 0;
  tensors.lead = lead;
  return tensors;
}

/// A token's place along the leading axes; the second is 0 in prefill.
struct Place {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

/// What one head needs of one token.
struct TokenInputs {
  std::vector<float> query, key, value;
  float decay = 1, beta = 1;
};
TokenInputs read_token(const RuleTensors& tensors, const Place& place, std::int64_t head, const Setting& setting);
void write_output(const RuleTensors& tensors, const Place& place, std::int64_t head, const std::vector<float>& output,
                  const Setting& setting);
void clear_output(const RuleTensors& tensors, const Place& place, std::int64_t head);

/// The arithmetic of the rule under these options.
Arithmetic rule_arithmetic(const Setting& setting);

/// S[V, K] of one head, K contiguous.
class HeadState {
 public:
  HeadState(std::int64_t value_size, std::int64_t key_size, const Setting& setting)
      : value_size_(value_size), key_size_(key_size), setting_(setting), state_(static_cast<std::size_t>(value_size * key_size)) {}

  /// A row outside the pool reads as zero (E6).
  void load(const Rows& pool, std::int64_t row, std::int64_t head);
  /// Rounds once (E5); a row outside the pool is dropped.
  void store(const Rows& pool, std::int64_t row, std::int64_t head) const;
  /// S <- g S; r = beta (v - S k); S <- S + r k^T; o = scale S q
  std::vector<float> step(const TokenInputs& token, float scale);
  /// The same for several tokens at once, by the WY representation.
  std::vector<std::vector<float>> chunk(const std::vector<TokenInputs>& tokens, float scale);
  void multiply(float factor) {
    for (float& x : state_) x *= factor;
  }
  /// Rounds every element to the dtype's values: what no honest call does to a state in flight.
  void round_to(DType dtype) {
    for (float& x : state_) x = rounded_to(dtype, x);
  }

 private:
  /// The state as it is stored between tokens or chunks.
  void keep();
  const float* row(std::int64_t v) const { return state_.data() + v * key_size_; }
  float* row(std::int64_t v) { return state_.data() + v * key_size_; }

  std::int64_t value_size_, key_size_;
  Setting setting_;
  std::vector<float> state_;
};

}  // namespace quire::conformance::honest
