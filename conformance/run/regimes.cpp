// Classes of calls.
#include "regimes.h"

#include <quire/index_view.h>
#include <quire/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace quire::conformance {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Elements of a host tensor of floats.
class Numbers {
 public:
  explicit Numbers(const quire_tensor* tensor) : tensor_(tensor) {}
  bool defined() const { return tensor_ != nullptr; }
  std::int64_t size(int axis) const { return tensor_->shape[axis]; }
  double operator()(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    const std::int64_t places[] = {i, j, k, l};
    std::int64_t offset = 0;
    for (int axis = 0; axis < tensor_->rank; ++axis) offset += places[axis] * tensor_->strides[axis];
    const auto dtype = static_cast<DType>(tensor_->dtype);
    return read_number(dtype, static_cast<const std::byte*>(tensor_->data) + offset * size_of(dtype));
  }
  /// Calls body(x) for every element of a tensor of up to four axes.
  template <typename Body>
  void for_each(const Body& body) const {
    if (!defined()) return;
    std::int64_t sizes[] = {1, 1, 1, 1};
    for (int axis = 0; axis < tensor_->rank; ++axis) sizes[axis] = size(axis);
    for (std::int64_t i = 0; i < sizes[0]; ++i) {
      for (std::int64_t j = 0; j < sizes[1]; ++j) {
        for (std::int64_t k = 0; k < sizes[2]; ++k) {
          for (std::int64_t l = 0; l < sizes[3]; ++l) body((*this)(i, j, k, l));
        }
      }
    }
  }

 private:
  const quire_tensor* tensor_;
};

std::string dtype_class(const quire_tensor& tensor) {
  switch (tensor.dtype) {
    case QUIRE_F64: return "float64";
    case QUIRE_F32: return "float32";
    case QUIRE_F16:
    case QUIRE_BF16: return "half or bf16";
    default: return "fp8";
  }
}

// ---- the gated delta rule ----

std::string decay_class(const quire_tensor* g, bool raw) {
  if (raw) return "decay: raw gates";
  double least = 1;
  Numbers(g).for_each([&](double x) { least = x < least ? x : least; });
  if (least <= 0) return "decay: with zeros";
  return least == 1 ? "decay: none" : least >= 0.5 ? "decay: mild" : "decay: strong";
}

std::string beta_class(const quire_tensor* beta) {
  double greatest = 0;
  Numbers(beta).for_each([&](double x) { greatest = x > greatest ? x : greatest; });
  return greatest > 1 ? "beta: up to 2" : "beta: up to 1";
}

std::vector<std::string> rule_regimes(const quire_tensor* g, const quire_tensor* beta, bool raw, bool normalises,
                                      const quire_tensor* state) {
  return {decay_class(g, raw), beta_class(beta), normalises ? "keys: l2norm" : "keys: as they are",
          "states: " + (state != nullptr ? dtype_class(*state) : "none")};
}

std::string length_class(std::int64_t longest) {
  return longest <= 1 ? "longest sequence: up to 1" : longest < 64 ? "longest sequence: 2 to 63" : "longest sequence: 64 and more";
}

std::vector<std::string> prefill_regimes(const quire_gdn_prefill_args& args) {
  const quire_tensor* state = args.output_state != nullptr        ? args.output_state
                              : args.state_checkpoints != nullptr ? args.state_checkpoints
                                                                  : args.initial_state;
  std::vector<std::string> regimes = rule_regimes(args.g, args.beta, false, args.use_qk_l2norm != 0, state);
  const IntegerView starts(args.cu_seqlens);
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i + 1 < starts.size(0); ++i) longest = std::max(longest, starts(i + 1) - starts(i));
  regimes.push_back(length_class(longest));
  return regimes;
}

std::vector<std::string> verify_regimes(const quire_gdn_verify_args& args) {
  std::vector<std::string> regimes = rule_regimes(args.g, args.beta, false, args.use_qk_l2norm != 0, args.state_pool);
  regimes.push_back(length_class(IndexView(*args.index).seq()));
  return regimes;
}

// ---- attention ----

// Where a column's key or value lies: a token of the call, a slot of the pool, or a hole.
struct Column {
  enum class Kind { token, slot, hole } kind;
  std::int64_t place;
};

class Weights {
 public:
  explicit Weights(const quire_attend_args& args)
      : args_(args), view_(*args.index), q_(args.q), k_(args.k), k_pool_(args.k_pool), sinks_(args.sinks) {
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      for (std::int64_t i = 0; i < view_.seq(); ++i) look_at(b, i);
    }
  }

  std::int64_t most_columns() const { return most_columns_; }
  std::string weights() const {
    if (most_columns_ < 2) return "weights: a single column";
    return has_one_hot_ ? "weights: one-hot" : is_flat_ ? "weights: flat" : "weights: mixed";
  }

 private:
  Column column(std::int64_t b, std::int64_t j) const {
    if (j >= view_.table_columns()) return {Column::Kind::token, j - view_.table_columns()};  // a draft's token
    if (view_.is_tabled()) {
      const std::int64_t slot = view_.slot(b, j);
      return {slot >= 0 && slot < k_pool_.size(0) ? Column::Kind::slot : Column::Kind::hole, slot};
    }
    const std::int64_t place = view_.block_size() == 1 ? j : view_.closing_token(b, j);
    return {place < 0 ? Column::Kind::hole : Column::Kind::token, place};
  }

  void look_at(std::int64_t b, std::int64_t i) {
    std::vector<Column> columns;
    const std::int64_t all = view_.is_selecting() ? view_.choices() : view_.columns();
    for (std::int64_t c = 0; c < all; ++c) {
      const std::int64_t j = view_.is_selecting() ? view_.choice(b, i, c) : c;
      if (view_.sees(b, i, j)) columns.push_back(column(b, j));
    }
    most_columns_ = std::max(most_columns_, static_cast<std::int64_t>(columns.size()));
    if (columns.size() < 2) return;
    for (std::int64_t head = 0; head < q_.size(2); ++head) look_at(b, i, head, columns);
  }

  void look_at(std::int64_t b, std::int64_t i, std::int64_t head, const std::vector<Column>& columns) {
    const std::int64_t kv_head = head / (q_.size(2) / k_.size(2));
    std::vector<double> scores;
    for (const Column& column : columns) {
      double sum = 0;  // D2: a hole's
      for (std::int64_t d = 0; d < q_.size(3) && column.kind != Column::Kind::hole; ++d) {
        sum +=
            q_(b, i, head, d) * (column.kind == Column::Kind::slot ? k_pool_(column.place, kv_head, d) : k_(b, column.place, kv_head, d));
      }
      const double score = args_.scale * sum;
      scores.push_back(args_.softcap > 0 ? args_.softcap * std::tanh(score / args_.softcap) : score);
    }
    const double greatest = *std::max_element(scores.begin(), scores.end());
    double sum = sinks_.defined() && view_.is_real(b, i) ? std::exp(sinks_(head) - greatest) : 0;
    for (const double score : scores) sum += std::exp(score - greatest);
    const double most = 1 / sum;
    has_one_hot_ |= most > 0.99;
    is_flat_ &= most <= 2 / static_cast<double>(scores.size());  // NaN is not flat
  }

  const quire_attend_args& args_;
  IndexView view_;
  Numbers q_, k_, k_pool_, sinks_;
  std::int64_t most_columns_ = 0;
  bool has_one_hot_ = false, is_flat_ = true;
};

std::string sight_class(const IndexView& view) {
  return view.is_draft()       ? "sight: draft"
         : view.is_selecting() ? "sight: selection"
         : view.has_window()   ? "sight: window"
         : view.is_tabled()    ? "sight: causal"
                               : "sight: packed or whole";
}

std::vector<std::string> attend_regimes(const quire_attend_args& args) {
  const Weights weights(args);
  const std::int64_t columns = weights.most_columns();
  return {columns <= 1    ? "columns: up to 1"
          : columns <= 16 ? "columns: 2 to 16"
                          : "columns: 17 and more",
          weights.weights(), "inputs: " + dtype_class(*args.k), sight_class(IndexView(*args.index)),
          args.softcap > 0        ? "scores: softcap"
          : args.sinks != nullptr ? "scores: sinks"
                                  : "scores: plain"};
}

}  // namespace

std::vector<std::string> regimes_of(quire_op op, const void* args) {
  switch (op) {
    case QUIRE_OP_ATTEND: return attend_regimes(*static_cast<const quire_attend_args*>(args));
    case QUIRE_OP_GDN_PREFILL: return prefill_regimes(*static_cast<const quire_gdn_prefill_args*>(args));
    case QUIRE_OP_GDN_DECODE: {
      const auto& decode = *static_cast<const quire_gdn_decode_args*>(args);
      return rule_regimes(decode.g, decode.beta, decode.A_log != nullptr, decode.use_qk_l2norm != 0, decode.state_pool);
    }
    case QUIRE_OP_GDN_VERIFY: return verify_regimes(*static_cast<const quire_gdn_verify_args*>(args));
    default: return {};
  }
}

}  // namespace quire::conformance
