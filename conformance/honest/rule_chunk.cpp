// The gated delta rule of one head, chunk by chunk: the WY representation with a triangular solve (laws E).
//
// With D(i, j) the product of the decays of tokens j+1 .. i and D0(i) that of all up to i, the rows u_i that the rule adds solve
//   u_i + sum over j < i of beta_i D(i, j) (k_i . k_j) u_j = beta_i (v_i - D0(i) S k_i).
// With T the inverse of that unit lower triangle, u = T diag(beta) V - (T diag(beta D0) K) S^T, and then
//   o_i = scale (D0(i) S q_i + sum over j <= i of D(i, j) (q_i . k_j) u_j),   S <- D0(n-1) S + sum of D(n-1, j) u_j k_j^T.
#include "rule.h"

#include <algorithm>

namespace quire::conformance::honest {

namespace {

// A lower triangle, its diagonal included, row by row.
class Triangle {
 public:
  explicit Triangle(std::int64_t size) : elements_(static_cast<std::size_t>(size * (size + 1) / 2)) {}
  float& operator()(std::int64_t i, std::int64_t j) { return elements_[static_cast<std::size_t>(i * (i + 1) / 2 + j)]; }

 private:
  std::vector<float> elements_;
};

struct Decays {
  std::vector<float> from_start;  // D0
  Triangle between;               // D
};

Decays decays_of(const std::vector<TokenInputs>& tokens, bool from_log_sums) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  Decays decays{std::vector<float>(tokens.size()), Triangle(n)};
  std::vector<float> sums(tokens.size());
  float product = 1, sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float decay = tokens[static_cast<std::size_t>(i)].decay;
    product *= decay;
    sum += from_log_sums ? std::log(decay) : 0.0F;
    sums[static_cast<std::size_t>(i)] = sum;
    decays.from_start[static_cast<std::size_t>(i)] = from_log_sums ? std::exp(sum) : product;
    decays.between(i, i) = 1;
    for (std::int64_t j = 0; j < i; ++j) {
      decays.between(i, j) = from_log_sums ? std::exp(sum - sums[static_cast<std::size_t>(j)]) : decays.between(i - 1, j) * decay;
    }
  }
  return decays;
}

}  // namespace

std::vector<std::vector<float>> HeadState::chunk(const std::vector<TokenInputs>& tokens, float scale) {
  const Arithmetic arithmetic = rule_arithmetic(setting_);
  const Format stored = setting_.options.stored;
  const auto n = static_cast<std::int64_t>(tokens.size());
  const auto at = [&](std::int64_t i) -> const TokenInputs& { return tokens[static_cast<std::size_t>(i)]; };
  Decays decays = decays_of(tokens, setting_.options.decay_from_log_sums);

  // A = tril(diag(beta) (D o K K^T), -1) and its solve T = (I + A)^-1, row by row.
  Triangle a(n), t(n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j)
      a(i, j) = at(i).beta * decays.between(i, j) * arithmetic.dot(at(i).key.data(), at(j).key.data(), key_size_);
    t(i, i) = 1;
    for (std::int64_t j = 0; j < i; ++j) {
      float sum = 0;
      arithmetic.in_order(i - j, [&](std::int64_t l) { sum = arithmetic.add_product(sum, a(i, j + l), t(j + l, j)); });
      t(i, j) = -sum;
    }
  }
  // U = T diag(beta) V, W = T diag(beta D0) K, u = U - W S^T.
  std::vector<std::vector<float>> u(tokens.size(), std::vector<float>(static_cast<std::size_t>(value_size_)));
  std::vector<float> w(static_cast<std::size_t>(key_size_));
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<float>& row_i = u[static_cast<std::size_t>(i)];
    std::fill(w.begin(), w.end(), 0.0F);
    arithmetic.in_order(i + 1, [&](std::int64_t j) {
      const float factor = t(i, j) * at(j).beta;
      arithmetic.add_scaled(row_i.data(), factor, at(j).value.data(), value_size_);
      arithmetic.add_scaled(w.data(), factor * decays.from_start[static_cast<std::size_t>(j)], at(j).key.data(), key_size_);
    });
    for (float& x : w) x = rounded_to(stored, x);
    for (std::int64_t v = 0; v < value_size_; ++v) {
      float& u_iv = row_i[static_cast<std::size_t>(v)];
      u_iv = rounded_to(stored, u_iv - arithmetic.dot(row(v), w.data(), key_size_));
    }
  }
  std::vector<std::vector<float>> outputs(tokens.size(), std::vector<float>(static_cast<std::size_t>(value_size_)));
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<float>& output = outputs[static_cast<std::size_t>(i)];
    for (std::int64_t v = 0; v < value_size_; ++v) {
      output[static_cast<std::size_t>(v)] =
          decays.from_start[static_cast<std::size_t>(i)] * arithmetic.dot(row(v), at(i).query.data(), key_size_);
    }
    arithmetic.in_order(i + 1, [&](std::int64_t j) {
      const float weight = decays.between(i, j) * arithmetic.dot(at(i).query.data(), at(j).key.data(), key_size_);
      arithmetic.add_scaled(output.data(), weight, u[static_cast<std::size_t>(j)].data(), value_size_);
    });
    for (float& x : output) x *= scale;
  }
  multiply(decays.from_start.back());
  for (std::int64_t v = 0; v < value_size_; ++v) {
    arithmetic.in_order(n, [&](std::int64_t j) {
      const float factor = decays.between(n - 1, j) * u[static_cast<std::size_t>(j)][static_cast<std::size_t>(v)];
      arithmetic.add_scaled(row(v), factor, at(j).key.data(), key_size_);
    });
  }
  keep();
  return outputs;
}

}  // namespace quire::conformance::honest
