// Errors of the gated delta rule, token by token. The header derives what stands here.
#include "error_model_rule.h"

#include "transcendental.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace quire::reference {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// |log| of float32's smallest number, what a decay of 0 is taken for in a sum of logs.
constexpr double most_log = 103.3;

double square(double x) { return x * x; }

// The greatest finite value: a column that holds infinities or NaN has no say in the others' errors.
void raise(double& greatest, double x) {
  if (x > greatest && x < infinity) greatest = x;
}

double dot(const double* x, const double* y, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// x^T A x of a symmetric matrix; not below 0, where cancellation would have it.
double form(const std::vector<double>& matrix, const double* x, std::int64_t n) {
  if (matrix.empty()) return 0;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * dot(matrix.data() + i * n, x, n);
  return sum > 0 ? sum : 0;
}

}  // namespace

RuleErrors::RuleErrors(const GdnOperands& operands, std::int64_t head, const quire_contract& contract)
    : operands_(&operands),
      head_(head),
      keys_(operands.key_size()),
      values_(operands.value_size()),
      u_(contract),
      chunk_(contract.chunk_length > 1 ? contract.chunk_length : 1),
      fade_(1 - 1 / chunk_),
      from_logs_(contract.decay_from_log_sums != 0),
      inputs_(operands, head),
      scales_(zeros(values_)),
      state_(zeros(keys_ * values_)),
      parts_(state_),
      drift_(zeros(chunk_ > 1 ? keys_ * values_ : 0)),
      covariance_(zeros(keys_ * keys_)),
      gram_(zeros(chunk_ > 1 ? keys_ * keys_ : 0)),
      element_(zeros(keys_)),
      along_(element_),
      predicted_(scales_),
      squares_(scales_),
      correction_(scales_),
      output_(scales_),
      deviation_(scales_),
      recent_(scales_),
      lost_(scales_),
      output_lost_(scales_),
      peaks_(scales_) {}

void RuleErrors::load(const RowView& pool, std::int64_t row) {
  std::vector<double> keys = zeros(keys_);
  for (std::int64_t v = 0; v < values_; ++v) {
    double& scale = scales_[static_cast<std::size_t>(v)];
    if (row_in(pool, row)) {
      widen(pool.dtype(), pool.at(row, head_, v), keys.data(), keys_);
      for (std::int64_t i = 0; i < keys_; ++i) {
        state_[at(i, v)] = keys[static_cast<std::size_t>(i)];
        raise(scale, std::fabs(state_[at(i, v)]));
      }
    }
    // Squares of scales must be numbers.
    if (scale > 0) scale = std::clamp(scale, 1e-140, 1e140);
  }
  for (std::size_t n = 0; n < state_.size(); ++n) parts_[n] = square(state_[n]);
  for (std::int64_t i = 0; i < keys_ && !gram_.empty(); ++i) {
    double greatest = 0;
    for (std::int64_t v = 0; v < values_; ++v) raise(greatest, parts_[at(i, v)] / square(scales_[static_cast<std::size_t>(v)]));
    gram_[static_cast<std::size_t>(i * keys_ + i)] = greatest;
  }
}

// w_v: the greatest of what the column has met. A decay that leaves nothing of that lets it fall, but no further than P, measured in it, is
// sure not to grow.
void RuleErrors::grow_scales() {
  constexpr double strong = 1e-3, least = 1e-6;
  const double g = std::fabs(inputs_.decay());
  double fall = 1;
  for (std::int64_t v = 0; v < values_; ++v) {
    double& scale = scales_[static_cast<std::size_t>(v)];
    const double before = scale;
    if (g < strong) scale *= std::fmax(g, least);
    raise(scale, std::fabs(inputs_.value()[v]));
    if (scale > 0) scale = std::clamp(scale, 1e-140, 1e140);
    if (before > scale) fall = std::fmax(fall, before / scale);
  }
  if (fall == 1) return;
  for (double& p : covariance_) p *= square(fall);
  for (double& y : gram_) y *= square(fall);
}

// Relative errors common to a token's gates and its normalised vectors.
RuleErrors::Gates RuleErrors::gates(const TokenPlace& token) {
  Gates errors;
  const double g = inputs_.decay();
  if (operands_->A_log.defined()) {  // E3
    const double A_log = widen(operands_->A_log.dtype(), operands_->A_log.at(head_));
    const double dt_bias = widen(operands_->dt_bias.dtype(), operands_->dt_bias.at(head_));
    const double y = widen(operands_->a.dtype(), operands_->a.at(token.first, token.second, head_)) + dt_bias;
    const double b = widen(operands_->b.dtype(), operands_->b.at(token.first, token.second, head_));
    const double rate = math::exp(A_log), exponent = rate * math::softplus(y);
    // g = exp(-x) turns absolute errors of x into relative ones. x has those of two functions and of products (u |A_log| where exp is an
    // exp2 of a product), and through softplus those of the sum a + dt_bias and of 1 + exp.
    errors.decay = u_.exp + square(exponent) * (4 * u_.exp + (4 + square(A_log)) * u_.accumulate) +
                   square(rate) * u_.accumulate * (1 + square(y * math::sigmoid(y)));
    // sigmoid: exp of -b, a sum, a quotient.
    errors.beta = 2 * u_.exp + (2 + square(b)) * u_.accumulate;
    // A decay that underflows is zero or nearly so: nothing of its relative error is left.
    if (g == 0) errors.decay = 0;
  }
  if (chunk_ > 1) {
    const double log = g > 0 ? std::fmin(std::fabs(math::log(g)), most_log) : most_log;
    log_sum_ = fade_ * log_sum_ + log;
    errors.decay += from_logs_ ? u_.accumulate * square(log_sum_) + u_.exp * square(log) : g == 1 ? 0 : u_.accumulate;
    // Each pair of a chunk's tokens has its own difference of logs and its own exp; far pairs weigh little.
    pair_ = from_logs_ ? 2 * (u_.exp + u_.accumulate * (1 + square(log))) : u_.accumulate;
  }
  if (operands_->use_qk_l2norm) {
    // E2: half the relative error of the sum of squares, a square root and a quotient (or a reciprocal root).
    const auto norm = [&](const double* x, double all) {
      double fourth = 0;
      for (std::int64_t i = 0; i < keys_; ++i) fourth += square(square(x[i]));
      if (all >= u_.most) floor_ = infinity;
      // Among half's denormals an element loses h: 2 x h of the sum.
      const double range = square(u_.smallest_operand) / (all + 1e-6);
      return (u_.sum(static_cast<double>(keys_), 1, fourth) + u_.product * fourth) / 4 + range + 2 * u_.accumulate + u_.exp;
    };
    errors.query = norm(inputs_.query(), inputs_.query_squares());
    errors.key = norm(inputs_.key(), inputs_.key_squares());
  }
  return errors;
}

// Whether the sequence had this token's k, v, g and beta before, or where keys are rounded before they
// multiply, its k.
bool RuleErrors::is_repeated() {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&](double x) { hash = (hash ^ std::bit_cast<std::uint64_t>(x) ^ (hash >> 29)) * 0x9E3779B97F4A7C15ULL; };
  for (std::int64_t i = 0; i < keys_; ++i) add(inputs_.key()[i]);
  // Its roundings to a narrow type or by E2 are the key's own.
  if (u_.operand <= u_.accumulate && !operands_->use_qk_l2norm) {
    for (std::int64_t v = 0; v < values_; ++v) add(inputs_.value()[v]);
    add(inputs_.decay());
    add(inputs_.beta());
  }
  return !seen_.insert(hash).second;
}

void RuleErrors::step(const TokenPlace& token) {
  inputs_.load(token);
  tokens_ += 1;
  stepped_ = true;
  grow_scales();
  const Gates errors = gates(token);
  grow_floor();
  const double correction = correct(errors);
  last_decay_ = errors.decay;
  update();
  lose_range();
  propagate(correction, errors.decay, is_repeated());
  answer(errors);
}

// r = beta (v - S k): answers dr, in scales.
double RuleErrors::correct(const Gates& errors) {
  const double g = inputs_.decay(), beta = inputs_.beta();
  const double* k = inputs_.key();
  std::fill(predicted_.begin(), predicted_.end(), 0.0);
  std::fill(squares_.begin(), squares_.end(), 0.0);
  for (std::int64_t i = 0; i < keys_; ++i) {
    for (std::int64_t v = 0; v < values_; ++v) {
      const std::size_t n = at(i, v), column = static_cast<std::size_t>(v);
      predicted_[column] += (g * state_[n]) * k[i];
      parts_[n] = square(g) * (fade_ * parts_[n] + (1 - fade_) * square(state_[n]));
      squares_[column] += parts_[n] * square(k[i]);
    }
  }
  const double terms = static_cast<double>(keys_) + std::fmin(chunk_, tokens_) - 1;
  const double gram = fade_ * square(g) * form(gram_, k, keys_);
  // In a chunk, sums over its tokens multiply once more: operands are rounded again.
  const double again = chunk_ > 1 ? u_.product : u_.accumulate;
  const double normalising = operands_->use_qk_l2norm ? 2 * u_.accumulate : 0;
  double elements = 0;
  for (std::int64_t i = 0; i < keys_; ++i) {
    along_[static_cast<std::size_t>(i)] = dot(covariance_.data() + i * keys_, k, keys_);
    elements += square(g * k[i]) * covariance_[static_cast<std::size_t>(i * keys_ + i)];
  }
  along_key_ = std::fmax(0, square(g) * dot(along_.data(), k, keys_));
  const double second = square(beta) * (u_.sum(terms, along_key_, elements) + (again + u_.accumulate) * along_key_ +
                                        (u_.product + normalising + u_.store) * elements +
                                        (u_.product + u_.accumulate + u_.store + errors.beta + 4 * errors.key) * along_key_);
  double greatest = 0;
  for (std::int64_t v = 0; v < values_; ++v) {
    const std::size_t column = static_cast<std::size_t>(v);
    const double value = inputs_.value()[v], total = predicted_[column], weight = square(scales_[column]);
    const double r = correction_[column] = beta * (value - total);
    if (weight == 0) continue;
    const double projections = square(total) + gram * weight;
    const double variance =
        square(beta) * (u_.sum(terms, projections, squares_[column]) + again * projections + pair_ * gram * weight +
                        (u_.product + normalising + u_.store) * squares_[column] + u_.accumulate * square(value - total)) +
        (chunk_ > 1 ? u_.product * square(beta * value) : 0) +               // beta v is an operand
        (u_.product + u_.accumulate + u_.store + errors.beta) * square(r) +  // r is a product, and an operand
        errors.key * square(std::fabs(r) + std::fabs(beta * total));         // k's norm enters twice
    raise(greatest, variance / weight);
  }
  return greatest + second;
}

// S <- g S + r k^T, the parts, and el.
void RuleErrors::update() {
  const double g = inputs_.decay();
  const double* k = inputs_.key();
  const double normalising = operands_->use_qk_l2norm ? 2 * u_.accumulate : 0;
  // How many tokens long an error of roundoff u repeats, where what is rounded moves in one direction by `drawn` and to and fro by
  // `stirred`.
  const auto repeats = [&](double u, double drawn, double stirred, double moved) {
    if (drawn >= u) return 1.0;  // the common case, without a division
    // It is rounded back to what it was, at most by as much as it had moved.
    if (moved < u) return tokens_ * (tokens_ > 1 ? square(moved / u) : 1);
    return 1 / std::clamp(std::fmax(drawn / u, square(stirred / u)), 1 / tokens_, 1.0);
  };
  // A decay that draws by a rounding or more leaves nothing to ask of how the state is stirred.
  const double lost = std::fabs(1 - g);
  const bool is_drawn = square(lost) >= u_.root && lost >= std::fmax(u_.root, u_.store_root);
  std::vector<double> weights = scales_;  // 1 / w_v^2; 0 for a column of nothing but zeros
  for (double& weight : weights) weight = weight == 0 ? 0 : 1 / square(weight);
  for (std::int64_t i = 0; i < keys_; ++i) {
    double greatest = 0;
    for (std::int64_t v = 0; v < values_; ++v) {
      const std::size_t n = at(i, v);
      const double kept = g * state_[n], added = correction_[static_cast<std::size_t>(v)] * k[i], older = parts_[n];
      const double weight = weights[static_cast<std::size_t>(v)];
      parts_[n] += square(added);
      if (!drift_.empty()) drift_[n] = square(g) * drift_[n] + last_decay_ * square(kept);
      state_[n] = kept + added;
      if (weight == 0) continue;
      const double stirred = !is_drawn && kept != 0 ? std::fabs(added / kept) : 1;
      double variance = (u_.product + normalising + u_.store) * square(added);
      if (u_.store > 0) variance += u_.store / chunk_ * repeats(u_.store_root, lost, stirred, lost + stirred) * square(state_[n]);
      if (g != 1) variance += u_.accumulate * repeats(u_.root, square(lost), lost * stirred, lost) * square(kept);
      if (added != 0 || chunk_ > 1) {
        const double sums = (1 - fade_) * square(state_[n]) + fade_ * parts_[n];
        variance += u_.accumulate * repeats(u_.root, lost, stirred, lost + stirred) * sums + fade_ * pair_ * older;
      }
      raise(greatest, variance * weight);
    }
    const double second = (u_.product + normalising + u_.store) * square(inputs_.beta() * k[i]) * along_key_ +
                          (g != 1 ? u_.accumulate : 0) * square(g) * covariance_[static_cast<std::size_t>(i * keys_ + i)];
    element_[static_cast<std::size_t>(i)] = greatest + second;
  }
}

void RuleErrors::propagate(double correction, double decay_variance, bool repeated) {
  const double g2 = square(inputs_.decay()), beta = inputs_.beta();
  const double* k = inputs_.key();
  const std::vector<double>& p = along_;
  const double kpk = dot(p.data(), k, keys_);
  // What is left where P is projected away is noise of float64, which must not turn P indefinite.
  double residue = 0;
  for (std::int64_t i = 0; i < keys_; ++i) residue += covariance_[static_cast<std::size_t>(i * keys_ + i)];
  residue *= 1e-15 * g2 * square(1 + std::fabs(beta) * dot(k, k, keys_));
  // The lower triangle is computed, and the upper one its mirror: M does not damp an antisymmetric part, which noise would be and which
  // `grown` would let grow.
  double old_trace = 0, new_trace = correction * dot(k, k, keys_);
  for (std::int64_t i = 0; i < keys_; ++i) {
    double* row = covariance_.data() + i * keys_;
    const double along_k = square(beta) * kpk * k[i] - beta * p[static_cast<std::size_t>(i)], along_p = -beta * k[i];
    for (std::int64_t j = 0; j <= i; ++j) row[j] = g2 * (row[j] + along_k * k[j] + along_p * p[static_cast<std::size_t>(j)]);
    row[i] = std::fmax(row[i], 0.0) + residue;
    old_trace += row[i];
    new_trace += element_[static_cast<std::size_t>(i)];
  }
  double grown = 1, joined = 1;
  if (repeated && old_trace > 0 && new_trace > 0) {
    grown = 1 + std::sqrt(new_trace / old_trace);
    joined = 1 + std::sqrt(old_trace / new_trace);
  }
  for (std::int64_t i = 0; i < keys_; ++i) {
    double* row = covariance_.data() + i * keys_;
    const double along_k = joined * correction * k[i];
    for (std::int64_t j = 0; j <= i; ++j) row[j] = covariance_[static_cast<std::size_t>(j * keys_ + i)] = grown * row[j] + along_k * k[j];
    row[i] += joined * element_[static_cast<std::size_t>(i)];
  }
  if (gram_.empty()) return;
  double part = 0;
  for (std::int64_t v = 0; v < values_; ++v) {
    const std::size_t column = static_cast<std::size_t>(v);
    raise(part, (square(correction_[column]) + square(beta) * (square(inputs_.value()[v]) + square(predicted_[column]))) /
                    square(scales_[column]));
  }
  for (std::int64_t i = 0; i < keys_; ++i) {
    double greatest = 0;
    for (std::int64_t v = 0; v < values_; ++v) raise(greatest, square(state_[at(i, v)]) / square(scales_[static_cast<std::size_t>(v)]));
    for (std::int64_t j = 0; j < keys_; ++j) {
      const std::size_t n = static_cast<std::size_t>(i * keys_ + j);
      covariance_[n] += decay_variance * g2 * gram_[n];
      gram_[n] = fade_ * g2 * gram_[n] + part * k[i] * k[j];
      if (i == j) gram_[n] += (1 - fade_) * greatest;
    }
  }
}

// o = scale S q
void RuleErrors::answer(const Gates& errors) {
  const double* q = inputs_.query();
  const double query_length = std::sqrt(dot(q, q, keys_));
  std::fill(output_.begin(), output_.end(), 0.0);
  std::fill(squares_.begin(), squares_.end(), 0.0);
  std::vector<double> of_state = zeros(values_), of_drift = zeros(values_);
  for (std::int64_t i = 0; i < keys_; ++i) {
    for (std::int64_t v = 0; v < values_; ++v) {
      const std::size_t n = at(i, v), column = static_cast<std::size_t>(v);
      output_[column] += state_[n] * q[i];
      squares_[column] += square(q[i]) * parts_[n];
      of_state[column] += square(q[i] * state_[n]);
      if (!drift_.empty()) of_drift[column] += square(q[i]) * drift_[n];
    }
  }
  const double terms = static_cast<double>(keys_) + std::fmin(chunk_, tokens_) - 1;
  const double again = chunk_ > 1 ? u_.product : u_.accumulate;
  const double normalising = operands_->use_qk_l2norm ? 2 * u_.accumulate : 0;
  const double carried = form(covariance_, q, keys_), gram = fade_ * form(gram_, q, keys_);
  const double fresh = dot(q, inputs_.key(), keys_) * inputs_.beta();
  double elements = 0;
  for (std::int64_t i = 0; i < keys_; ++i) elements += square(q[i]) * covariance_[static_cast<std::size_t>(i * keys_ + i)];
  const double second = u_.sum(terms, carried, elements) + (u_.product + normalising + u_.store) * elements;
  for (std::int64_t v = 0; v < values_; ++v) {
    const std::size_t column = static_cast<std::size_t>(v);
    const double o = output_[column], weight = square(scales_[column]), projections = square(o) + gram * weight;
    const double variance = weight * (carried + second) + u_.sum(terms, projections, squares_[column]) + again * projections + pair_ * gram * weight +
                            (u_.product + normalising) * squares_[column] + u_.store * of_state[column] +
                            (errors.query + 2 * u_.accumulate) * square(o) +  // the norm, and the product with the rounded scale
                            last_decay_ * square(o - fresh * inputs_.value()[v]) +
                            (of_drift[column] > 0 && of_state[column] > 0 ? of_drift[column] / of_state[column] * square(o) : 0);
    output_[column] = operands_->scale * o;
    deviation_[column] = std::fabs(operands_->scale) * (std::sqrt(variance) + output_lost_[column] + cancelled_ * peaks_[column] * query_length) +
                         (weight > 0 ? output_floor_ : 0);
  }
}

void RuleErrors::lose_range() {
  const double operand = square(u_.smallest_operand), store = square(u_.smallest_store), either = operand + store;
  if (either == 0) return;
  const double K = static_cast<double>(keys_), beta = inputs_.beta(), g = std::fabs(inputs_.decay());
  const double key = dot(inputs_.key(), inputs_.key(), keys_), query = dot(inputs_.query(), inputs_.query(), keys_);
  const double tokens = chunk_ > 1 ? std::fmin(chunk_, tokens_) : 0;
  for (std::int64_t v = 0; v < values_; ++v) {
    const std::size_t column = static_cast<std::size_t>(v);
    if (scales_[column] == 0) continue;  // nothing but zeros
    double& recent = recent_[column];
    recent *= fade_;
    raise(recent, std::fabs(inputs_.value()[v]));
    raise(recent, std::fabs(correction_[column]));
    for (std::int64_t i = 0; i < keys_; ++i) raise(recent, std::fabs(state_[at(i, v)]));
    const double sums = tokens * (1 + square(recent));
    const double correction = square(beta) * either * (K * square(recent) + key) + store + either * sums * (1 + key);
    const double element = operand * (key + K * square(correction_[column])) + store * K + either * sums * (1 + key);
    double& lost = lost_[column];
    lost = g * std::fmax(1, std::fabs(1 - beta * key)) * lost + std::sqrt(key * correction) + std::sqrt(element);
    output_lost_[column] = std::sqrt(query) * lost + std::sqrt(either * (K * square(recent) + query + sums * (1 + key) * (1 + query)));
  }
}

void RuleErrors::grow_floor() {
  if (!u_.is_float32) return;
  const double K = static_cast<double>(keys_), beta = std::fabs(inputs_.beta()), g = std::fabs(inputs_.decay());
  const double key = std::sqrt(dot(inputs_.key(), inputs_.key(), keys_)), query = std::sqrt(dot(inputs_.query(), inputs_.query(), keys_));
  double state = 0;
  for (const double x : state_) raise(state, std::fabs(x));
  for (const double w : scales_) raise(state, w);
  largest_ = std::fmax(std::fmax(state, beta * (state + key * state * std::sqrt(K))), fade_ * largest_);
  // Decays over a chunk, products or exps, scale what the state was at its begin, however little is left of it.
  const double decays = chunk_ > 1 ? (from_logs_ ? u_.smallest_exp : u_.smallest) * largest_ * std::sqrt(K) : 0;
  // Products below the smallest step vanish: K of them in k.S, K in g S and in r k^T, which k and r carry on. Those of k_i.k_j and q.k_j in
  // a chunk, and a normalised key's own elements, multiply an r or a state.
  const bool carried = chunk_ > 1 || operands_->use_qk_l2norm;
  const double lost = beta * (K + key * std::sqrt(K) + (carried ? K * largest_ : 0)) * u_.smallest + u_.smallest;
  const double joined = std::sqrt(K) * (2 + (carried ? largest_ : 0)) * u_.smallest + key * lost + decays;
  if (floor_ < infinity) floor_ = g * std::fmax(1, std::fabs(1 - beta * square(key))) * floor_ + joined;
  const double reach = state * std::sqrt(K) * std::fmax(1, std::fmax(key, query)) * std::fmax(1, beta * std::fmax(1, key));
  if (reach >= u_.most) floor_ = infinity;
  if (chunk_ > 1) {
    // Where |1 - beta k.k| is above 1, a chunk's parts grow from token to token, each on its own, and what a later token projects away is
    // left over from their cancellation: a rounding of the greatest, in every element. Parts that grow past the range are lost.
    constexpr double grown = 1;
    growth_ = fade_ * growth_ + math::log(std::fmax(1, g * std::fabs(1 - beta * square(key))));
    for (std::int64_t v = 0; v < values_; ++v) {
      double& peak = peaks_[static_cast<std::size_t>(v)];
      peak *= fade_;
      for (std::int64_t i = 0; i < keys_; ++i) raise(peak, std::fabs(state_[at(i, v)]));
    }
    cancelled_ = growth_ > grown ? u_.root * std::sqrt(K) * (1 + beta * key) : 0;
    // The fading sum of a chunk's tokens is 0.63 of the plain one.
    const double parts = growth_ > grown ? math::exp(std::fmin(growth_ / 0.63, 700)) * largest_ * std::sqrt(K) * std::fmax(1, key) : 0;
    if (parts >= u_.most) floor_ = infinity;
  }
  output_floor_ = std::fabs(operands_->scale) * (query * floor_ + K * (1 + largest_) * u_.smallest) + u_.smallest;
  if (floor_ == infinity) output_floor_ = infinity;
}

void RuleErrors::put_output(Bounds& output, std::int64_t token) const {
  for (std::int64_t v = 0; v < values_; ++v) {
    const std::size_t n = static_cast<std::size_t>((token * operands_->heads() + head_) * values_ + v),
                      column = static_cast<std::size_t>(v);
    output.center[n] = output_[column];
    output.deviation[n] = published(output_[column], deviation_[column]);
  }
}

void RuleErrors::put_state(Bounds& state) const {
  for (std::int64_t v = 0; v < values_; ++v) {
    for (std::int64_t i = 0; i < keys_; ++i) {
      const std::size_t n = static_cast<std::size_t>((head_ * values_ + v) * keys_ + i);
      const double center = state.center[n] = state_[at(i, v)];
      if (!stepped_ || scales_[static_cast<std::size_t>(v)] == 0) continue;                   // as it was read, or nothing but zeros
      const double before = center - inputs_.beta() * inputs_.key()[i] * inputs_.value()[v];  // what the last decay's error scales
      const double variance = square(scales_[static_cast<std::size_t>(v)]) * covariance_[static_cast<std::size_t>(i * keys_ + i)] +
                              u_.store * square(center) + last_decay_ * square(before) + (drift_.empty() ? 0 : drift_[at(i, v)]);
      state.deviation[n] = published(center, std::sqrt(variance) + floor_ + cancelled_ * peaks_[static_cast<std::size_t>(v)] + lost_[static_cast<std::size_t>(v)]);
    }
  }
}

}  // namespace quire::reference
