// Tolerances of attend (laws D).
//
// Notation, all float64: scores s_j, weights p_j = exp(s_j - lse), values V_j, o = sum p_j V_j. With softcap c, s = c tanh(t / c), t =
// scale q.k.
//
// A score's error is that of its dot product (Roundoff::sum and the operands of its products), times the slope 1 - tanh(t/c)^2 of a
// softcap, and the roundings of scale, of softcap, of log2 e folded into it and of s - max, each relative to what it forms. With exp's own
// it is the relative error sig_j of weight j:
//     sig_j^2 = slope^2 scale^2 var(q.k) + u_a^2 (2 s_j^2 + 2 (s_j - max)^2 + 1) + u_exp^2
// A relative error e of a weight moves o by p_j e (V_j - o), for the denominator moves with it. First order is not enough where sig is
// not small (scores of a million): exp(c sig) - 1 stands for c sig, and a weight moves by 1 at most.
//
//     var(o) = sum_j (p_j sig_j)^2 (V_j - o)^2      scores
//            + sum over groups of equal scores of (sum p_j sig_j (V_j - o))^2        equal scores err equally, and where weights
//              are rounded to a narrow type, those within one of its steps
//            + sums: the numerator's additions in the order of the columns, backwards, or in a random one (the worst of the three) and
//              the denominator's, times o
//            + operands of p V, grouped as above, where the numerator's weights are rounded but the denominator's are not
//            + where operands are narrow, the query's roundings, common to all columns: u^2 scale^2 sum_d q_d^2 (sum_j p_j k_jd (V_j -
//            o))^2
//            + the values' roundings likewise, alike in columns of equal value: u^2 sum over values x of (x sum p_j)^2
//            + o^2 times a few roundings: normalising, storing a part; a stored part of the columns is the difference of two partial
//              sums, twice the greatest at most
// and, since they do not average out, added outside the root:
//     2 u_a |sum p_j s_j (V_j - o)|                  the rounded scale and log2 e, common to all columns
//     (u_exp + u_a) sum p_j |V_j - o| / 2            errors of exp common to part of the columns: its bias, or a block's rescaling
//     what half's denormals lose, h = 2^-25 each: of weights, whose greatest is 1 before they are normalised, grouped as above; of values,
//     h sum p_j; of stored scores, in sig_j
//     additions of equal terms (columns of equal weight, and for the numerator a value of the eight before), which within a binade all
//     round alike: uniform in half an ulp, mean 0.3 u of each partial sum.
#include "error_model.h"

#include "error_model_parts.h"
#include "extend.h"
#include "kernels.h"
#include "parallel.h"
#include "rows.h"
#include "transcendental.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace quire::reference {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double equal_terms = 0.3;

double square(double x) { return x * x; }

// The columns that a token sees, for one kv head: keys and values in float64, holes as zeros (D2).
struct Columns {
  std::vector<double> keys, values;
  std::int64_t count = 0;
};

// A sum of terms, one after another in the order of the columns: its value and what its additions lose.
class RunningSum {
 public:
  void add(double term, bool repeated) {
    sum_ += term;
    sums_ += sum_;
    squares_ += square(sum_);
    terms_ += square(term);
    magnitude_ = std::fmax(magnitude_, std::fabs(sum_));
    count_ += 1;
    if (repeated && term != 0) repeated_ += 1;
  }
  double value() const { return sum_; }
  /// The greatest magnitude of a partial sum.
  double greatest() const { return magnitude_; }
  double term_squares() const { return terms_; }
  /// Mean square of all additions' errors, in units of u_accumulate: forwards, backwards (the partial sums are sum - sum before), or in a
  /// random order.
  double independent() const {
    const double backwards = count_ * square(sum_) - 2 * sum_ * (sums_ - sum_) + (squares_ - square(sum_));
    return std::fmax(std::fmax(squares_, backwards), count_ * (square(sum_) / 3 + terms_ / 6));
  }
  /// Sum of the errors of additions that round alike.
  double coherent() const { return equal_terms * repeated_ * std::fmax(magnitude_, std::fabs(sum_)); }

 private:
  double sum_ = 0, sums_ = 0, squares_ = 0, terms_ = 0, magnitude_ = 0, count_ = 0, repeated_ = 0;
};

class AttendErrors {
 public:
  AttendErrors(const quire_attend_args& args, const quire_contract& contract)
      : view_(*args.index),
        q_(args.q),
        k_(args.k),
        v_(args.v),
        k_pool_(args.k_pool),
        v_pool_(args.v_pool),
        sinks_(args.sinks),
        scale_(args.scale),
        softcap_(args.softcap),
        size_(q_.size(3)),
        value_size_(v_.size(3)),
        group_(q_.size(2) / k_.size(2)),
        u_(contract),
        reach_(factor(contract)) {}

  AttendBounds run() {
    const std::int64_t queries = view_.batch() * view_.seq() * q_.size(2);
    bounds_ = {{zeros(queries * value_size_), zeros(queries * value_size_)}, {zeros(queries), zeros(queries)}};
    const double work = static_cast<double>(queries * view_.columns()) * static_cast<double>(size_ + 8 * value_size_);
    parallel_for(view_.batch() * view_.seq() * k_.size(2), work, [&](std::int64_t n) {
      const std::int64_t head = n % k_.size(2), token = n / k_.size(2);
      const Columns columns = collect(token / view_.seq(), token % view_.seq(), head);
      for (std::int64_t i = 0; i < group_; ++i) query(token / view_.seq(), token % view_.seq(), head * group_ + i, columns);
    });
    return std::move(bounds_);
  }

 private:
  // The address of a column's key or value; null for a hole.
  const std::byte* column(const RowView& tokens, const RowView& pool, std::int64_t b, std::int64_t j, std::int64_t head) const {
    if (j >= view_.table_columns()) return tokens.at(b, j - view_.table_columns(), head);  // a draft's token
    if (view_.is_tabled()) {
      const std::int64_t slot = slot_in(pool, view_.slot(b, j));
      return slot < 0 ? nullptr : pool.at(slot, head);
    }
    const std::int64_t place = view_.block_size() == 1 ? j : view_.closing_token(b, j);
    return place < 0 ? nullptr : tokens.at(b, place, head);
  }

  Columns collect(std::int64_t b, std::int64_t i, std::int64_t head) const {
    Columns columns;
    const auto append = [](std::vector<double>& to, const RowView& view, const std::byte* from, std::int64_t n) {
      to.resize(to.size() + static_cast<std::size_t>(n));
      if (from != nullptr) widen(view.dtype(), from, to.data() + to.size() - n, n);
    };
    const auto read = [&](std::int64_t j) {
      append(columns.keys, k_, column(k_, k_pool_, b, j, head), size_);
      append(columns.values, v_, column(v_, v_pool_, b, j, head), value_size_);
      ++columns.count;
    };
    if (view_.is_selecting()) {
      for (std::int64_t c = 0; c < view_.choices(); ++c) {
        const std::int64_t j = view_.choice(b, i, c);
        if (view_.sees(b, i, j)) read(j);
      }
      return columns;
    }
    const bool reads_tokens = !view_.is_tabled() && view_.block_size() == 1;
    const ColumnRange range = reads_tokens ? view_.token_range(b, i) : view_.table_range(b, i);
    for (std::int64_t j = range.begin; j < range.end; ++j) read(j);
    for (std::int64_t j = 0; view_.is_draft() && j < view_.seq(); ++j) {
      if (view_.sees_draft_token(b, i, j)) read(view_.table_columns() + j);
    }
    return columns;
  }

  // B7: a token past the columns it reads.
  bool is_unspecified(std::int64_t b, std::int64_t i) const {
    return view_.is_tabled() && !view_.is_draft() && view_.is_real(b, i) &&
           view_.position(b, i) / view_.block_size() >= view_.table_columns();
  }

  // Weights and their errors.
  struct Weights {
    std::vector<double> scores, weights, errors, pulls;  // pulls: what a common relative error of all scores scales
    std::vector<double> slopes;
    std::vector<std::size_t> order;    // by weight, then column
    std::vector<std::int64_t> equals;  // the column before of equal weight, or -1
    std::vector<std::size_t> groups;   // where in `order` weights begin that are rounded alike; the end too
    double greatest = 0, sink = 0, sink_error = 0, log_sum = 0;
    double unit = 0;  // the weight of a score equal to the greatest
    bool overflows = false;
  };

  Weights weigh(const std::vector<double>& q, double sink, const Columns& columns) const {
    const std::size_t count = static_cast<std::size_t>(columns.count);
    Weights all{std::vector<double>(count),
                std::vector<double>(count),
                std::vector<double>(count),
                std::vector<double>(count),
                std::vector<double>(count),
                {},
                {},
                {}};
    double query_squares = 0;
    for (const double x : q) query_squares += square(x);
    for (std::size_t j = 0; j < count; ++j) {
      const double* key = columns.keys.data() + static_cast<std::int64_t>(j) * size_;
      double sum = 0, squares = 0, magnitudes = 0, key_squares = 0;
      for (std::int64_t d = 0; d < size_; ++d) {
        const double product = q[static_cast<std::size_t>(d)] * key[d];
        sum += product;
        squares += square(product);
        magnitudes += std::fabs(product);
        key_squares += square(key[d]);
      }
      const double reach = magnitudes * std::fmax(1, std::fabs(scale_));
      all.overflows |= reach >= u_.most && reach < infinity;
      const double size = static_cast<double>(size_);
      const double products = square(scale_) * (u_.sum(size, square(sum), squares) + u_.product * squares +
                                                square(u_.smallest_operand) * (query_squares + key_squares) + square(u_.smallest * size));
      double score = scale_ * sum, slope = 1;
      if (softcap_ > 0) {
        // The steepest that an honest score may meet.
        const double nearest = std::fmax(0, std::fabs(score) - reach_ * std::sqrt(products));
        slope = 1 - square(math::tanh(nearest / softcap_));
        score = softcap_ * math::tanh(score / softcap_);
      }
      all.slopes[j] = slope * scale_;
      all.pulls[j] = slope * scale_ * sum + (softcap_ > 0 ? score : 0);
      all.scores[j] = score;
      all.errors[j] = square(slope) * products + (softcap_ > 0 ? u_.exp + 2 * u_.accumulate : 0) * square(score) +
                      u_.store * square(score) + square(u_.smallest_store);
    }
    all.greatest = sink;
    for (const double score : all.scores) all.greatest = score > all.greatest || score != score ? score : all.greatest;
    all.weights = all.scores;
    kernels().weights(all.weights.data(), all.greatest, columns.count);
    double sum = 0;
    for (const double weight : all.weights) sum += weight;
    if (sink != -infinity) sum += all.sink = math::exp(sink - all.greatest);
    all.log_sum = math::log(sum);
    all.unit = 1 / sum;
    for (std::size_t j = 0; j < count; ++j) {
      const double score = all.scores[j];
      all.weights[j] /= sum;
      all.errors[j] = weight_error(all.weights[j], all.errors[j] + shared_error(score, all.greatest));
    }
    all.sink /= sum;
    all.sink_error = sink == -infinity ? 0 : weight_error(all.sink, shared_error(sink, all.greatest));
    all.order.resize(count);
    std::iota(all.order.begin(), all.order.end(), std::size_t{0});
    std::stable_sort(all.order.begin(), all.order.end(), [&](std::size_t a, std::size_t b) { return all.weights[a] < all.weights[b]; });
    all.equals.assign(count, -1);
    for (std::size_t n = 1; n < count; ++n) {
      if (all.weights[all.order[n]] == all.weights[all.order[n - 1]])
        all.equals[all.order[n]] = static_cast<std::int64_t>(all.order[n - 1]);
    }
    const double near = 1 + std::fmax(std::sqrt(u_.operand), u_.store_root);
    for (std::size_t n = 0; n < count; ++n) {
      if (n == 0 || !(all.weights[all.order[n]] <= near * all.weights[all.order[all.groups.back()]])) all.groups.push_back(n);
    }
    all.groups.push_back(count);
    return all;
  }

  // Of every score, a sink's too: log2 e, s - max, exp.
  double shared_error(double score, double greatest) const {
    return u_.accumulate * (2 * square(score) + 2 * square(score - greatest) + 1) + u_.exp;
  }
  // The deviation of a weight whose exponent has this variance. Below float32's normal range exp may answer zero.
  double weight_error(double weight, double variance) const {
    const double error = weight * std::expm1(std::fmin(reach_ * std::sqrt(variance), 700)) / reach_;
    return std::fmin(error, 1) + u_.smallest_exp;
  }

  void query(std::int64_t b, std::int64_t i, std::int64_t head, const Columns& columns) {
    const std::size_t place = static_cast<std::size_t>((b * view_.seq() + i) * q_.size(2) + head);
    double* center = bounds_.out.center.data() + static_cast<std::int64_t>(place) * value_size_;
    double* deviation = bounds_.out.deviation.data() + static_cast<std::int64_t>(place) * value_size_;
    double& lse = bounds_.lse.center[place];
    double& lse_deviation = bounds_.lse.deviation[place];
    if (is_unspecified(b, i)) {
      std::fill(deviation, deviation + value_size_, no_bound);
      lse_deviation = no_bound;
      return;
    }
    const double sink = sinks_.defined() && view_.is_real(b, i) ? widen(sinks_.dtype(), sinks_.at(head)) : -infinity;
    if (columns.count == 0) {  // D3
      lse = sink;
      lse_deviation = published(sink, u_.root * std::fabs(sink));
      return;
    }
    std::vector<double> q = zeros(size_);
    widen(q_.dtype(), q_.at(b, i, head), q.data(), size_);
    const Weights all = weigh(q, sink, columns);
    const std::size_t count = all.weights.size();

    RunningSum denominator;
    double pull = 0, relative = square(all.sink_error);
    for (std::size_t j = 0; j < count; ++j) {
      // Weights equal to the greatest are ones, whose sums are exact.
      denominator.add(all.weights[j], all.equals[j] >= 0 && all.scores[j] != all.greatest);
      if (all.weights[j] > 0) pull += all.weights[j] * all.pulls[j];
      relative += square(all.errors[j]);
    }
    const double sums = u_.accumulate * denominator.independent(), alike = u_.root * denominator.coherent();
    lse = std::isinf(all.greatest) ? all.greatest : all.greatest + all.log_sum;
    const double forming = (u_.accumulate + u_.store) * (2 * square(lse) + 2 * square(all.greatest) + square(all.log_sum)) +
                           u_.exp * (square(all.log_sum) + 1);
    lse_deviation = published(
        lse, std::sqrt(relative + group_errors(all) + query_error(q, all, columns, [](std::size_t) { return 1.0; }) + sums + forming) +
                 alike + 2 * u_.root * std::fabs(pull) + (u_.exp_root + u_.root));
    if (all.overflows) lse_deviation = published(lse, infinity);

    std::vector<double> terms(count);
    for (std::int64_t d = 0; d < value_size_; ++d) {
      const auto value = [&](std::size_t j) {
        return columns.values[j * static_cast<std::size_t>(value_size_) + static_cast<std::size_t>(d)];
      };
      RunningSum numerator;
      double magnitudes = 0, value_squares = 0;
      for (std::size_t j = 0; j < count; ++j) {
        bool repeated = false;
        std::int64_t equal = all.equals[j];
        for (int back = 0; back < 8 && equal >= 0 && !repeated; ++back) {
          repeated = value(static_cast<std::size_t>(equal)) == value(j);
          equal = all.equals[static_cast<std::size_t>(equal)];
        }
        numerator.add(all.weights[j] * value(j), repeated);
        magnitudes += std::fabs(value(j)) * all.weights[j];
        value_squares += square(value(j));
      }
      const double o = numerator.value();
      const double gaps = all.unit * (u_.smallest_operand + u_.smallest_store);  // between weights among half's denormals
      double scores = square(all.sink_error * o), drift = all.sink * std::fabs(o), common = 0;
      for (std::size_t j = 0; j < count; ++j) {
        const double away = value(j) - o;
        scores += square(all.errors[j] * away);
        if (all.weights[j] > 0) common += all.weights[j] * all.pulls[j] * away;
        drift += all.weights[j] * std::fabs(away);
      }
      for_groups(all, [&](auto begin, auto end) {
        double error = 0, weight = 0, values = 0;
        for (auto j = begin; j != end; ++j) {
          error += all.errors[*j] * (value(*j) - o);
          weight += all.weights[*j] * value(*j);
          values += value(*j);
        }
        scores += (end - begin > 1 ? square(error) : 0) + (u_.operand + u_.store) * square(weight) + square(gaps * values);
      });
      // Parts stored as wide as the sums are not rounded again.
      const double parts = u_.store > u_.accumulate ? 4 * u_.store * square(numerator.greatest()) : 0;
      const double variance =
          scores + query_error(q, all, columns, [&](std::size_t j) { return value(j) - o; }) + value_error(all, value) +
          u_.accumulate * numerator.independent() + square(o) * sums + (u_.product + u_.store) * numerator.term_squares() +
          square(o) * (u_.operand + 3 * u_.accumulate + 2 * u_.store + u_.exp) + parts;
      double error = std::sqrt(variance) + u_.root * numerator.coherent() + std::fabs(o) * alike + 2 * u_.root * std::fabs(common) +
                     (u_.exp_root + u_.root) * drift / 2 + u_.smallest * (static_cast<double>(count) + 2) +
                     gaps * std::sqrt(value_squares) + u_.smallest_store * all.unit * std::sqrt(static_cast<double>(count)) +
                     u_.smallest_operand;
      // Numerators are sums of values weighted up to 1.
      if (all.overflows || magnitudes * static_cast<double>(count) >= u_.most) error = infinity;
      center[d] = o;
      deviation[d] = published(o, error);
    }
  }

  // Calls body(begin, end) for each run of columns of about equal weight.
  template <typename Body>
  static void for_groups(const Weights& all, const Body& body) {
    for (std::size_t n = 0; n + 1 < all.groups.size(); ++n) body(all.order.data() + all.groups[n], all.order.data() + all.groups[n + 1]);
  }

  // Variance of what a narrow query's roundings do to sum_j weights_j away(j).
  template <typename Away>
  double query_error(const std::vector<double>& q, const Weights& all, const Columns& columns, const Away& away) const {
    if (u_.operand <= u_.accumulate) return 0;
    std::vector<double> sums = zeros(size_);
    for (std::size_t j = 0; j < all.weights.size(); ++j) {
      const double weight = all.weights[j] * all.slopes[j] * away(j);
      const double* key = columns.keys.data() + static_cast<std::int64_t>(j) * size_;
      for (std::int64_t d = 0; d < size_ && weight != 0; ++d) sums[static_cast<std::size_t>(d)] += weight * key[d];
    }
    double variance = 0;
    for (std::size_t d = 0; d < sums.size(); ++d) variance += square(q[d] * sums[d]);
    return u_.operand * variance;
  }

  // Variance of what narrow values' roundings do to the numerator: equal values are rounded alike.
  template <typename Value>
  double value_error(const Weights& all, const Value& value) const {
    if (u_.operand <= u_.accumulate) return 0;
    std::vector<std::pair<double, double>> terms;
    for (std::size_t j = 0; j < all.weights.size(); ++j) terms.emplace_back(value(j), all.weights[j]);
    std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    double variance = 0, weight = 0;
    for (std::size_t n = 0; n < terms.size(); ++n) {
      weight += terms[n].second;
      if (n + 1 < terms.size() && terms[n + 1].first == terms[n].first) continue;
      variance += square(terms[n].first * weight);
      weight = 0;
    }
    return u_.operand * variance;
  }

  // Columns of equal score may err equally.
  static double group_errors(const Weights& all) {
    double sum = 0;
    for_groups(all, [&](auto begin, auto end) {
      double error = 0;
      for (auto j = begin; j != end; ++j) error += all.errors[*j];
      if (end - begin > 1) sum += square(error);
    });
    return sum;
  }

  IndexView view_;
  RowView q_, k_, v_, k_pool_, v_pool_, sinks_;
  double scale_, softcap_;
  std::int64_t size_, value_size_, group_;
  Roundoff u_;
  double reach_;
  AttendBounds bounds_;
};

}  // namespace

AttendBounds attend_bounds(const quire_attend_args& args, const quire_contract& contract) { return AttendErrors(args, contract).run(); }

}  // namespace quire::reference
