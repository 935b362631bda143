// Errors of the gated delta rule: one head's state and the covariance of its rounding errors, carried from token to token.
//
// A head's exact step (laws E) is linear in the state: S <- g M S + beta v k^T with M = I - beta k k^T acting on the K axis. An error
// e_v[K] of a column S_v therefore goes on as g M e_v, and new errors of two kinds join it:
//   - errors of the elements of S, independent along K: variances el_i;
//   - errors of r_v, which reach S along k: covariance dr k k^T.
// So the covariance obeys P <- g^2 M P M^T + diag(el) + dr k k^T, and an output's error has variance scale^2 (q^T P q + the sum's own).
// P is shared by the columns: el and dr are the greatest over v, each column measured in its own scale w_v (the greatest of its values
// and initial states so far), since every error of a column grows with it.
//
// Sums of chunks. An algorithm that handles C tokens at once never forms the states between them: it works with their parts, the chunk's
// first state and the r_j k_j^T, whose roundings do not shrink where the parts cancel. Two sums of squares carry the parts, with a memory
// that fades over C tokens since the model does not know where chunks begin (fade = 1 - 1/C, 0 for a token recurrence):
//   parts_iv, of the elements of S_v:       Z <- fade g^2 Z + (1 - fade) (g S)^2 + (k_i r_v)^2
//   gram[K,K], of the parts' projections:   Y <- fade g^2 Y + (1 - fade) diag(S^2) + (r^2 + beta^2 (v^2 + (k.S)^2)) k k^T
// so that k^T Y k is the sum of the squares of the parts' contributions to k.S. The last factor holds r and the terms that an inverted
// triangular matrix adds up to r.
//
// Decays. Where they are multiplied up over a chunk, or exponentiated from log sums, or come from raw gates, a decay has a relative error
// of its own, common to the whole state: variance decay = u_a^2 G^2 + u_exp^2 (log g)^2 for log sums, G the sum of |log g| over a chunk,
// since each addition rounds the sum that it forms. It scales what the state held before the token, the part H of S, exactly known for the
// last token. Of older ones drift_iv <- g^2 drift + decay (g S_iv)^2 keeps each element's own, and decay g^2 gram joins P for what later
// tokens turn it into. An output's share of drift is that of its terms' squares, times o^2: drifts of its terms are alike.
//
// Errors that repeat. A token equal to an earlier one makes, once the state has settled, the same rounding errors again; where keys are
// rounded before they multiply, to a narrower type or by E2, an equal key is enough. Errors that may be fully correlated add up as
// (1 + a) P + (1 + 1/a) W for any a > 0, and a = sqrt(tr W / tr P) makes deviations add. And an element that moves by less than an ulp from
// token to token is rounded the same way until it has moved by one, n tokens long (or back for good, by as much as it had moved); then its
// errors' variance counts n times. A sum moves by (1 - g) |S| a token, in one direction, and by |k_i r_v| to and fro: n = u / (1 - g) or
// (u |S| / |k_i r_v|)^2, the fewer. The rounding of g S depends on (1 - g) S, which moves 1 / (1 - g) times slower.
//
// Second order. Roundings are relative to the numbers that an implementation has, whose mean squares are S^2 + P and not S^2. That counts
// where a key that comes again leaves little of either: r is then the error of S along k, and its own roundings are what stays. So dr has,
// with s = g^2 k^T P k and t = g^2 sum P_ii k_i^2, the terms that (k.gS)^2, its products' squares and r^2 have, for s, t and beta^2 s; el
// has those of r k^T and of g S; and an output those of q^T P q and of sum P_ii q_i^2.
//
// Half's range. Operands or intermediates rounded to half lose up to h = 2^-25 each where they lie among its denormals, however small they
// are: errors of a size of their own, which columns of different scales must not share. lost_v, a norm along K, bounds them column by
// column:
//     |e_v| <- g max(1, |1 - beta |k|^2|) |e_v| + |k| dr_v + el_v,   A_v the column's magnitude of late, its values' and corrections' too:
//     dr_v^2 = beta^2 h^2 (K A_v^2 + |k|^2) + h^2 where r is stored       h times each factor of k.S, and r's own
//     el_v^2 = h^2 (|k|^2 + K r_v^2) where operands, h^2 K where states   h times each factor of r k^T, and the state's own
// and to both in a chunk of n tokens so far: h^2 n (1 + A_v^2) (1 + |k|^2), since n terms of each sum over its tokens, which the decays
// after them do not make smaller, lose as much. They add as deviations and not as variances: what does not move loses the same each time.
//
// Not rounding but range: `floor` bounds what float32's denormals lose, in norms: |e| <- g max(1, |1 - beta |k|^2|) |e| + new. It is
// infinite once a magnitude passes 2^127, where float32 may overflow on the way to a finite result.
#pragma once

#include "error_model.h"
#include "error_model_parts.h"
#include "gdn_rule.h"

#include <unordered_set>

namespace quire::reference {

class RuleErrors {
 public:
  RuleErrors(const GdnOperands& operands, std::int64_t head, const quire_contract& contract);

  /// The state read: exact in whatever dtype (E5); a row outside the pool is zero (E6).
  void load(const RowView& pool, std::int64_t row);
  void step(const TokenPlace& token);
  /// The last token's output into [.., H, V], the token counted along the leading axes.
  void put_output(Bounds& output, std::int64_t token) const;
  /// The state into [H, V, K].
  void put_state(Bounds& state) const;

 private:
  struct Gates {
    double decay = 0, beta = 0, query = 0, key = 0;  // variances of relative errors
  };
  Gates gates(const TokenPlace& token);
  bool is_repeated();
  void grow_scales();
  double correct(const Gates& errors);
  void update();
  void propagate(double correction, double decay_variance, bool repeated);
  void answer(const Gates& errors);
  void grow_floor();
  void lose_range();
  std::size_t at(std::int64_t i, std::int64_t v) const { return static_cast<std::size_t>(i * values_ + v); }

  const GdnOperands* operands_;
  std::int64_t head_, keys_, values_;
  Roundoff u_;
  double chunk_, fade_;
  bool from_logs_;

  HeadInputs inputs_;
  std::vector<double> scales_;               // w_v
  std::vector<double> state_, parts_;        // [K, V]
  std::vector<double> drift_;                // [K, V], where chunks are
  std::vector<double> covariance_, gram_;    // [K, K], in scales; gram only where chunks are
  std::vector<double> element_;              // el_i
  std::vector<double> along_;                // [K], P k before the token
  std::vector<double> predicted_, squares_;  // [V]: k.gS, and the sum of the squares of its products' parts
  std::vector<double> correction_;           // [V]: r
  std::vector<double> output_, deviation_;   // [V]
  std::vector<double> recent_, lost_, output_lost_;  // [V]: A_v, |e_v|, and the output's; only where numbers are rounded to half
  std::vector<double> peaks_;                // [V]: magnitudes of late of the state's columns
  std::unordered_set<std::uint64_t> seen_;
  double tokens_ = 0, log_sum_ = 0;
  double pair_ = 0;        // variance of the error of a decay between two tokens of a chunk
  double along_key_ = 0;   // g^2 k^T P k, in scales
  double last_decay_ = 0;  // of the last token's decay
  double largest_ = 0;     // magnitude of late in the state and of r
  double floor_ = 0, output_floor_ = 0;
  double growth_ = 0;      // of a chunk's tokens, log: what keys that are too long for their beta make of a state
  double cancelled_ = 0;   // of `peaks_`: what the cancellation of grown parts of a chunk leaves
  bool stepped_ = false;
};

}  // namespace quire::reference
