// Float32 arithmetic as backends do it, in all its honest variety, and with the faults that tolerances must catch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace error_model_tests {

/// How an implementation computes. Bits are those of significands: 24 float32, 11 tf32 and half, 8 bf16.
struct Way {
  enum Order { forwards, backwards, pairwise, lanes };
  Order order = forwards;
  bool fused = false;            ///< std::fma in sums of products
  int operand_bits = 24;         ///< of a product's operands
  int sum_bits = 24;             ///< of sums
  int store_bits = 24;           ///< of states between chunks, weights, parts
  int chunk = 1;                 ///< tokens at once
  bool from_logs = false;        ///< decays exponentiated from sums of logs
  bool inverse = false;          ///< of a chunk's triangular matrix, rather than substitution
  bool early_output = false;     ///< o from the state before the token: q.(g S) + (q.k) r
  bool base_two = false;         ///< exp2 of scores times log2 e
  int block = 0;                 ///< columns of a step of online softmax; 0: all at once
  int pieces = 1;                ///< parts of the columns, merged by their lse
  bool normalise_first = false;  ///< weights are divided by their sum before they weigh

  // Faults.
  int decay_bits = 24;
  int state_bits = 24;        ///< the state is rounded after each token
  bool only_halfway = false;  ///< ... after the middle one only
  double epsilon = 1e-6;      ///< E2's
  double scale_error = 0;     ///< relative

  std::string name() const;
};

/// x rounded to nearest even to so many significant bits.
float rounded_to(float x, int bits);

/// A sum of terms term(i), or of products when both factors are given, in the way's order.
float sum_of(const Way& way, std::int64_t n, const std::function<float(std::int64_t)>& term);
float dot_of(const Way& way, std::int64_t n, const float* x, std::int64_t x_step, const float* y, std::int64_t y_step);

/// One sequence and head of the gated delta rule. q, k [T, K]; v [T, V]; state [V, K].
struct RuleCase {
  std::int64_t tokens = 1, keys = 1, values = 1;
  std::vector<float> q, k, v, g, beta, state;
  float scale = 1;
  bool normalise = false;
};
struct RuleResult {
  std::vector<float> output, state;  // [T, V], [V, K]
};
RuleResult compute_rule(const RuleCase& rule, const Way& way);

/// One query over n columns. k [n, D], v [n, Dv].
struct AttendCase {
  std::int64_t columns = 1, size = 1, values = 1;
  std::vector<float> q, k, v;
  float scale = 1, softcap = 0;
  bool has_sink = false;
  float sink = 0;
};
struct AttendResult {
  std::vector<float> out;
  float lse = 0;
};
AttendResult compute_attend(const AttendCase& attend, const Way& way);

}  // namespace error_model_tests
