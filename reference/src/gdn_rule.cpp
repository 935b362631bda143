// The gated delta rule of one head (laws E1-E3, E5).
#include "gdn_rule.h"

#include "transcendental.h"

#include <algorithm>
#include <cmath>

namespace quire::reference {

namespace {

std::size_t padded(std::int64_t size) {
  return static_cast<std::size_t>((size + rule_width - 1) / rule_width * rule_width);
}

// E2: x / sqrt(sum of squares + 1e-6), the sum in ascending order; answers the sum.
double normalise(std::vector<double>& x) {
  double sum = 0;
  for (const double element : x) sum += element * element;
  const double norm = std::sqrt(sum + 1e-6);
  for (double& element : x) element /= norm;
  return sum;
}

}  // namespace

HeadInputs::HeadInputs(const GdnOperands& operands, std::int64_t head)
    : operands_(operands),
      head_(head),
      key_(static_cast<std::size_t>(operands.key_size())),
      query_(key_.size()),
      value_(padded(operands.value_size())),
      output_(value_.size()) {}

std::byte* HeadInputs::row(const RowView& view, const TokenPlace& token) const {
  const std::int64_t head = head_ / (operands_.heads() / view.size(operands_.lead));
  return operands_.lead == 1 ? view.at(token.first, head) : view.at(token.first, token.second, head);
}

const std::byte* HeadInputs::gate(const RowView& view, const TokenPlace& token) const {
  return operands_.lead == 1 ? view.at(token.first, head_) : view.at(token.first, token.second, head_);
}

void HeadInputs::load(const TokenPlace& token) {
  widen(operands_.q.dtype(), row(operands_.q, token), query_.data(), operands_.key_size());
  widen(operands_.k.dtype(), row(operands_.k, token), key_.data(), operands_.key_size());
  widen(operands_.v.dtype(), row(operands_.v, token), value_.data(), operands_.value_size());
  if (operands_.use_qk_l2norm) {
    query_squares_ = normalise(query_);
    key_squares_ = normalise(key_);
  }
  load_gates(token);
}

void HeadInputs::load_gates(const TokenPlace& token) {
  if (operands_.A_log.defined()) {  // E3
    const double A_log = widen(operands_.A_log.dtype(), operands_.A_log.at(head_));
    const double dt_bias = widen(operands_.dt_bias.dtype(), operands_.dt_bias.at(head_));
    const double a = widen(operands_.a.dtype(), gate(operands_.a, token));
    const double b = widen(operands_.b.dtype(), gate(operands_.b, token));
    decay_ = math::exp(-math::exp(A_log) * math::softplus(a + dt_bias));
    beta_ = math::sigmoid(b);
    return;
  }
  decay_ = operands_.g.defined() ? widen(DType::f32, gate(operands_.g, token)) : 1.0;
  beta_ = operands_.beta.defined() ? widen(DType::f32, gate(operands_.beta, token)) : 1.0;
}

void HeadInputs::store_output(const TokenPlace& token) {
  const RowView& output = operands_.output;
  std::byte* to = operands_.lead == 1 ? output.at(token.first, head_) : output.at(token.first, token.second, head_);
  narrow(output.dtype(), output_.data(), to, operands_.value_size());
}

HeadState::HeadState(std::int64_t value_size, std::int64_t key_size)
    : value_size_(value_size), key_size_(key_size), state_(padded(value_size) * static_cast<std::size_t>(key_size)) {}

void HeadState::clear() { std::fill(state_.begin(), state_.end(), 0.0); }

void HeadState::load(const RowView& pool, std::int64_t row, std::int64_t head) {
  clear();
  if (!row_in(pool, row)) return;
  std::vector<double> keys(static_cast<std::size_t>(key_size_));
  for (std::int64_t v = 0; v < value_size_; ++v) {
    widen(pool.dtype(), pool.at(row, head, v), keys.data(), key_size_);
    for (std::int64_t k = 0; k < key_size_; ++k) at(v, k) = keys[static_cast<std::size_t>(k)];
  }
}

void HeadState::store(const RowView& pool, std::int64_t row, std::int64_t head) const {
  if (!row_in(pool, row)) return;
  std::vector<double> keys(static_cast<std::size_t>(key_size_));
  for (std::int64_t v = 0; v < value_size_; ++v) {
    for (std::int64_t k = 0; k < key_size_; ++k) keys[static_cast<std::size_t>(k)] = const_cast<HeadState*>(this)->at(v, k);
    narrow(pool.dtype(), keys.data(), pool.at(row, head, v), key_size_);
  }
}

void HeadState::step(HeadInputs& inputs, double scale, const Kernels& kernels) {
  for (std::int64_t group = 0; group < groups(); ++group) {
    kernels.rule({state_.data() + group * key_size_ * rule_width, inputs.key(), inputs.query(), inputs.value() + group * rule_width,
                  inputs.output() + group * rule_width, key_size_, inputs.decay(), inputs.beta(), scale});
  }
}

}  // namespace quire::reference
