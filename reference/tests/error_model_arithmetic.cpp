// Float32 implementations of the gated delta rule and of attention.
#include "error_model_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace error_model_tests {

namespace {

std::vector<float> floats(std::int64_t n) { return std::vector<float>(static_cast<std::size_t>(n)); }
std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

std::string Way::name() const {
  std::string text = chunk > 1 ? "chunk" + std::to_string(chunk) + (inverse ? " inverse" : "") : early_output ? "early" : "token";
  if (from_logs) text += " logs";
  if (block > 0) text += " block" + std::to_string(block);
  if (pieces > 1) text += " pieces" + std::to_string(pieces);
  if (base_two) text += " exp2";
  if (normalise_first) text += " normalised";
  constexpr const char* orders[] = {" forwards", " backwards", " pairwise", " lanes"};
  text += orders[order];
  return fused ? text + " fma" : text;
}

float rounded_to(float x, int bits) {
  if (bits >= 24 || !std::isfinite(x)) return x;
  const auto pattern = std::bit_cast<std::uint32_t>(x);
  const int drop = 24 - bits;
  const std::uint32_t half = (std::uint32_t{1} << (drop - 1)) - 1;
  return std::bit_cast<float>((pattern + half + ((pattern >> drop) & 1)) >> drop << drop);
}

float sum_of(const Way& way, std::int64_t n, const std::function<float(std::int64_t)>& term) {
  const auto add = [&](float a, float b) { return rounded_to(a + b, way.sum_bits); };
  float sum = 0;
  switch (way.order) {
    case Way::forwards:
      for (std::int64_t i = 0; i < n; ++i) sum = add(sum, term(i));
      return sum;
    case Way::backwards:
      for (std::int64_t i = n - 1; i >= 0; --i) sum = add(sum, term(i));
      return sum;
    case Way::lanes: {
      float lane[8] = {};
      for (std::int64_t i = 0; i < n; ++i) lane[i % 8] = add(lane[i % 8], term(i));
      for (int width = 4; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) lane[i] = add(lane[i], lane[i + width]);
      }
      return lane[0];
    }
    default: {
      std::vector<float> terms = floats(n);
      for (std::int64_t i = 0; i < n; ++i) terms[index(i)] = term(i);
      for (std::int64_t width = 1; width < n; width *= 2) {
        for (std::int64_t i = 0; i + width < n; i += 2 * width) terms[index(i)] = add(terms[index(i)], terms[index(i + width)]);
      }
      return n > 0 ? terms[0] : 0;
    }
  }
}

float dot_of(const Way& way, std::int64_t n, const float* x, std::int64_t x_step, const float* y, std::int64_t y_step) {
  const auto left = [&](std::int64_t i) { return rounded_to(x[i * x_step], way.operand_bits); };
  const auto right = [&](std::int64_t i) { return rounded_to(y[i * y_step], way.operand_bits); };
  if (way.fused && way.order != Way::pairwise) {
    float lane[4] = {};
    const std::int64_t lanes = way.order == Way::lanes ? 4 : 1;
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t i = way.order == Way::backwards ? n - 1 - step : step;
      lane[step % lanes] = std::fma(left(i), right(i), lane[step % lanes]);
    }
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
  }
  return sum_of(way, n, [&](std::int64_t i) { return rounded_to(left(i) * right(i), way.sum_bits); });
}

namespace {

class Rule {
 public:
  Rule(const RuleCase& rule, const Way& way) : rule_(rule), way_(way), q_(rule.q), k_(rule.k), g_(rule.g), K_(rule.keys), V_(rule.values) {
    result_.output = floats(rule.tokens * V_);
    result_.state = rule.state;
    scale_ = rule.scale * static_cast<float>(1 + way.scale_error);
    for (float& g : g_) g = rounded_to(g, way.decay_bits);
    for (std::int64_t t = 0; rule.normalise && t < rule.tokens; ++t) {
      normalise(q_.data() + t * K_);
      normalise(k_.data() + t * K_);
    }
  }

  RuleResult run() {
    if (way_.chunk > 1) {
      for (std::int64_t t = 0; t < rule_.tokens; t += way_.chunk) chunk(t, std::min<std::int64_t>(way_.chunk, rule_.tokens - t));
    } else {
      for (std::int64_t t = 0; t < rule_.tokens; ++t) token(t);
    }
    return result_;
  }

 private:
  void normalise(float* x) const {
    const float norm = std::sqrt(dot_of(way_, K_, x, 1, x, 1) + static_cast<float>(way_.epsilon));
    for (std::int64_t i = 0; i < K_; ++i) x[i] = way_.fused ? x[i] * (1 / norm) : x[i] / norm;
  }
  const float* q(std::int64_t t) const { return q_.data() + t * K_; }
  const float* k(std::int64_t t) const { return k_.data() + t * K_; }
  float* row(std::int64_t v) { return result_.state.data() + v * K_; }
  float operand(float x) const { return rounded_to(x, way_.operand_bits); }
  float add_product(float a, float b, float c) const { return rounded_to(way_.fused ? std::fma(a, b, c) : a * b + c, way_.sum_bits); }

  void token(std::int64_t t) {
    const float g = g_[index(t)], beta = rule_.beta[index(t)];
    const float qk = dot_of(way_, K_, q(t), 1, k(t), 1);
    for (std::int64_t v = 0; v < V_; ++v) {
      float* s = row(v);
      for (std::int64_t i = 0; i < K_; ++i) s[i] *= g;
      const float r = beta * (rule_.v[index(t * V_ + v)] - dot_of(way_, K_, s, 1, k(t), 1));
      float early = way_.early_output ? add_product(qk, r, dot_of(way_, K_, s, 1, q(t), 1)) : 0;
      for (std::int64_t i = 0; i < K_; ++i) s[i] = add_product(operand(k(t)[i]), operand(r), s[i]);
      result_.output[index(t * V_ + v)] = scale_ * (way_.early_output ? early : dot_of(way_, K_, s, 1, q(t), 1));
      if (!way_.only_halfway || t == rule_.tokens / 2) {
        for (std::int64_t i = 0; i < K_; ++i) s[i] = rounded_to(s[i], std::min(way_.state_bits, way_.store_bits));
      }
    }
  }

  // Decays from the chunk's begin to each of its tokens, and between its tokens.
  void decays(std::int64_t t, std::int64_t n, std::vector<float>& from_begin, std::vector<float>& between) const {
    from_begin = floats(n);
    between = floats(n * n);
    std::vector<float> logs = floats(n);
    float sum = 0, product = 1;
    for (std::int64_t i = 0; i < n; ++i) {
      const float g = g_[index(t + i)];
      logs[index(i)] = sum += std::log(std::max(g, 1e-38F));
      from_begin[index(i)] = way_.from_logs ? std::exp(sum) : product *= g;
      for (std::int64_t j = 0; j < i; ++j)
        between[index(i * n + j)] = way_.from_logs ? std::exp(sum - logs[index(j)]) : between[index((i - 1) * n + j)] * g;
      between[index(i * n + i)] = 1;
    }
  }

  void chunk(std::int64_t t, std::int64_t n) {
    std::vector<float> from_begin, between, r = floats(n * V_), lower = floats(n * n), reads = floats(n * n);
    decays(t, n, from_begin, between);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const float decay = between[index(i * n + j)];
        if (j < i) lower[index(i * n + j)] = decay * dot_of(way_, K_, k(t + i), 1, k(t + j), 1);
        reads[index(i * n + j)] = decay * dot_of(way_, K_, q(t + i), 1, k(t + j), 1);
      }
    }
    if (way_.inverse) {
      solve_by_inverse(t, n, from_begin, lower, r);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t v = 0; v < V_; ++v) {
          const float earlier = dot_of(way_, i, lower.data() + i * n, 1, r.data() + v, V_);
          const float first = from_begin[index(i)] * dot_of(way_, K_, row(v), 1, k(t + i), 1);
          r[index(i * V_ + v)] = rule_.beta[index(t + i)] * (rule_.v[index((t + i) * V_ + v)] - first - earlier);
        }
      }
    }
    std::vector<float> last = floats(n);
    for (std::int64_t v = 0; v < V_; ++v) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float first = from_begin[index(i)] * dot_of(way_, K_, row(v), 1, q(t + i), 1);
        result_.output[index((t + i) * V_ + v)] = scale_ * (first + dot_of(way_, i + 1, reads.data() + i * n, 1, r.data() + v, V_));
      }
      for (std::int64_t i = 0; i < K_; ++i) {
        for (std::int64_t j = 0; j < n; ++j) last[index(j)] = between[index((n - 1) * n + j)] * r[index(j * V_ + v)];
        float& s = row(v)[i];
        s = rounded_to(from_begin[index(n - 1)] * s + dot_of(way_, n, last.data(), 1, k(t) + i, K_), way_.store_bits);
      }
    }
  }

  // r = T (beta v) - T (beta decay k) S with T = (1 + beta lower)^-1.
  void solve_by_inverse(std::int64_t t, std::int64_t n, const std::vector<float>& from_begin, const std::vector<float>& lower,
                        std::vector<float>& r) {
    std::vector<float> inverse = floats(n * n), w = floats(n * K_), scaled_k = floats(n * K_), scaled_v = floats(n * V_);
    for (std::int64_t i = 0; i < n; ++i) {
      const float beta = rule_.beta[index(t + i)];
      inverse[index(i * n + i)] = 1;
      for (std::int64_t j = 0; j < i; ++j) {
        float sum = 0;
        for (std::int64_t m = j; m < i; ++m) sum = add_product(beta * lower[index(i * n + m)], inverse[index(m * n + j)], sum);
        inverse[index(i * n + j)] = -sum;
      }
      for (std::int64_t a = 0; a < K_; ++a) scaled_k[index(i * K_ + a)] = beta * from_begin[index(i)] * k(t + i)[a];
      for (std::int64_t v = 0; v < V_; ++v) scaled_v[index(i * V_ + v)] = beta * rule_.v[index((t + i) * V_ + v)];
    }
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t a = 0; a < K_; ++a) w[index(i * K_ + a)] = dot_of(way_, i + 1, inverse.data() + i * n, 1, scaled_k.data() + a, K_);
      for (std::int64_t v = 0; v < V_; ++v) {
        r[index(i * V_ + v)] =
            dot_of(way_, i + 1, inverse.data() + i * n, 1, scaled_v.data() + v, V_) - dot_of(way_, K_, w.data() + i * K_, 1, row(v), 1);
      }
    }
  }

  const RuleCase& rule_;
  const Way& way_;
  std::vector<float> q_, k_, g_;
  std::int64_t K_, V_;
  float scale_ = 1;
  RuleResult result_;
};

// Sum and numerator of columns [begin, end), relative to their greatest score.
struct Part {
  float greatest = -std::numeric_limits<float>::infinity(), sum = 0;
  std::vector<float> numerator;
};

class Attention {
 public:
  Attention(const AttendCase& attend, const Way& way) : case_(attend), way_(way) {
    const float scale = attend.scale * static_cast<float>(1 + way.scale_error);
    for (std::int64_t j = 0; j < attend.columns; ++j) {
      float score = scale * dot_of(way, attend.size, attend.q.data(), 1, attend.k.data() + j * attend.size, 1);
      if (attend.softcap > 0) score = attend.softcap * std::tanh(score / attend.softcap);
      scores_.push_back(score);
    }
  }

  AttendResult run() const {
    Part all = part(0, case_.columns / way_.pieces);
    for (int n = 1; n < way_.pieces; ++n) {
      all = merge(all, part(case_.columns * n / way_.pieces, case_.columns * (n + 1) / way_.pieces));
    }
    if (case_.has_sink) {
      Part sink{case_.sink, 1, floats(case_.values)};
      all = merge(all, sink);
    }
    AttendResult result;
    result.lse = all.greatest + std::log(all.sum);
    for (const float numerator : all.numerator) result.out.push_back(numerator / all.sum);
    return result;
  }

 private:
  float weight(float score, float greatest) const {
    if (way_.base_two) return std::exp2(score * 1.44269504F - greatest * 1.44269504F);
    return std::exp(score - greatest);
  }

  Part part(std::int64_t begin, std::int64_t end) const {
    const std::int64_t width = way_.block > 0 ? way_.block : end - begin;
    Part all;
    all.numerator = floats(case_.values);
    for (std::int64_t first = begin; first < end; first += width) {
      Part block = whole(first, std::min(first + width, end));
      all = first == begin ? block : way_.block > 0 ? online(all, first, std::min(first + width, end)) : block;
    }
    return all;
  }

  // The next block of columns joins: what was summed is scaled to the new greatest score.
  Part online(Part all, std::int64_t begin, std::int64_t end) const {
    float greatest = all.greatest;
    for (std::int64_t j = begin; j < end; ++j) greatest = std::max(greatest, scores_[index(j)]);
    const float old = weight(all.greatest, greatest);
    all.greatest = greatest;
    all.sum *= old;
    for (float& x : all.numerator) x *= old;
    for (std::int64_t j = begin; j < end; ++j) {
      const float w = weight(scores_[index(j)], greatest);
      all.sum += w;
      const float stored = rounded_to(w, std::min(way_.store_bits, way_.operand_bits));
      for (std::int64_t d = 0; d < case_.values; ++d) {
        const float value = rounded_to(case_.v[index(j * case_.values + d)], way_.operand_bits);
        float& sum = all.numerator[index(d)];
        sum = way_.fused ? std::fma(stored, value, sum) : sum + stored * value;
      }
    }
    return all;
  }

  Part whole(std::int64_t begin, std::int64_t end) const {
    Part all;
    for (std::int64_t j = begin; j < end; ++j) all.greatest = std::max(all.greatest, scores_[index(j)]);
    std::vector<float> weights;
    for (std::int64_t j = begin; j < end; ++j) weights.push_back(weight(scores_[index(j)], all.greatest));
    all.sum = sum_of(way_, end - begin, [&](std::int64_t j) { return weights[index(j)]; });
    for (float& w : weights) w = rounded_to(way_.normalise_first ? w / all.sum : w, way_.store_bits);
    for (std::int64_t d = 0; d < case_.values; ++d) {
      const float sum = dot_of(way_, end - begin, weights.data(), 1, case_.v.data() + begin * case_.values + d, case_.values);
      all.numerator.push_back(way_.normalise_first ? sum * all.sum : sum);
    }
    return all;
  }

  Part merge(const Part& a, const Part& b) const {
    Part both;
    both.greatest = std::max(a.greatest, b.greatest);
    const float left = weight(a.greatest, both.greatest), right = weight(b.greatest, both.greatest);
    both.sum = a.sum * left + b.sum * right;
    for (std::size_t d = 0; d < a.numerator.size(); ++d) both.numerator.push_back(a.numerator[d] * left + b.numerator[d] * right);
    return both;
  }

  const AttendCase& case_;
  const Way& way_;
  std::vector<float> scores_;
};

}  // namespace

RuleResult compute_rule(const RuleCase& rule, const Way& way) { return Rule(rule, way).run(); }

AttendResult compute_attend(const AttendCase& attend, const Way& way) { return Attention(attend, way).run(); }

}  // namespace error_model_tests
