// One head of the gated delta rule: its inputs widened, its state in float64, one step per token (laws E1-E3).
#pragma once

#include <quire/backend.h>

#include "kernels.h"
#include "rows.h"

#include <vector>

namespace quire::reference {

/// E1's sizes and views, shared by prefill ([T] tokens), decode and verify ([B, S] tokens).
struct GdnOperands {
  RowView q, k, v, g, beta;
  RowView A_log, a, dt_bias, b;  ///< E3, decode only
  RowView output;
  double scale = 1;
  bool use_qk_l2norm = false;

  int heads_axis() const { return lead; }
  std::int64_t key_size() const { return q.size(lead + 1); }
  std::int64_t value_size() const { return v.size(lead + 1); }
  std::int64_t heads() const { return output.size(lead); }
  int lead = 1;  ///< axes before the heads: 1 ([T]) or 2 ([B, S])
};

/// A token: its index along the leading axes (the second is 0 in prefill).
struct TokenPlace {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

/// What one head needs of one token, in float64.
class HeadInputs {
 public:
  HeadInputs(const GdnOperands& operands, std::int64_t head);
  /// E1: head h reads head h / (H / Hx) of each input. E2: q and k are normalised here. E3: gates from raw inputs.
  void load(const TokenPlace& token);
  void store_output(const TokenPlace& token);

  const double* key() const { return key_.data(); }
  const double* query() const { return query_.data(); }
  const double* value() const { return value_.data(); }
  double* output() { return output_.data(); }
  double decay() const { return decay_; }
  double beta() const { return beta_; }
  /// E2's sums of squares; 0 without it.
  double key_squares() const { return key_squares_; }
  double query_squares() const { return query_squares_; }

 private:
  std::byte* row(const RowView& view, const TokenPlace& token) const;
  const std::byte* gate(const RowView& view, const TokenPlace& token) const;
  void load_gates(const TokenPlace& token);

  const GdnOperands& operands_;
  std::int64_t head_;
  std::vector<double> key_, query_, value_, output_;  // value and output padded to whole groups of rule_width
  double decay_ = 1, beta_ = 1;
  double key_squares_ = 0, query_squares_ = 0;
};

/// S[V, K] of one head in float64: groups of rule_width rows v, held [group][k][v].
class HeadState {
 public:
  HeadState(std::int64_t value_size, std::int64_t key_size);
  void clear();
  /// Widens the row of a pool [*, H, V, K]; -1 or a row outside the pool is zero (E6).
  void load(const RowView& pool, std::int64_t row, std::int64_t head);
  /// Rounds once into the pool's dtype (E5); a row outside the pool is dropped.
  void store(const RowView& pool, std::int64_t row, std::int64_t head) const;
  /// S <- g S; r = beta (v - S k); S <- S + r k^T; o = scale S q
  void step(HeadInputs& inputs, double scale, const Kernels& kernels);

 private:
  std::int64_t groups() const { return (value_size_ + rule_width - 1) / rule_width; }
  double& at(std::int64_t v, std::int64_t k) {
    return state_[static_cast<std::size_t>(((v / rule_width) * key_size_ + k) * rule_width + v % rule_width)];
  }

  std::int64_t value_size_, key_size_;
  std::vector<double> state_;
};

/// Whether a pool has that row.
inline bool row_in(const RowView& pool, std::int64_t row) { return pool.defined() && row >= 0 && row < pool.size(0); }

}  // namespace quire::reference
