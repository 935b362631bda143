// The gated delta rule of one head, token by token (laws E1-E3, E5).
#include "rule.h"

#include <algorithm>
#include <cstring>

namespace quire::conformance::honest {

Arithmetic rule_arithmetic(const Setting& setting) {
  switch (setting.fault) {
    case Fault::rule_products_tf32: return Arithmetic(setting.options, Format::tf32, false);
    case Fault::rule_products_bf16: return Arithmetic(setting.options, Format::bf16, false);
    case Fault::rule_in_half: return Arithmetic(setting.options, Format::half, true);
    default: return Arithmetic(setting.options);
  }
}

namespace {

// E1: head h reads head h / (H / Hx) of each input.
std::byte* head_row(const RuleTensors& tensors, const Rows& rows, const Place& place, std::int64_t head, const Setting& setting) {
  const std::int64_t own = rows.size(tensors.lead);
  const std::int64_t source = setting.is(Fault::rule_heads_interleaved) ? head % own : head / (tensors.heads() / own);
  return tensors.lead == 1 ? rows.at(place.first, source) : rows.at(place.first, place.second, source);
}

float gate(const RuleTensors& tensors, const Rows& rows, const Place& place, std::int64_t head) {
  return read(rows.dtype(), tensors.lead == 1 ? rows.at(place.first, head) : rows.at(place.first, place.second, head));
}

// E2
void normalise(std::vector<float>& x, const Arithmetic& arithmetic, const Setting& setting) {
  const float sum = arithmetic.dot(x.data(), x.data(), static_cast<std::int64_t>(x.size()));
  float norm = std::sqrt(sum + 1e-6F);
  if (setting.is(Fault::epsilon_1e_5)) norm = std::sqrt(sum + 1e-5F);
  if (setting.is(Fault::epsilon_outside_root)) norm = std::sqrt(sum) + 1e-6F;
  if (setting.is(Fault::epsilon_as_least_norm)) norm = std::max(std::sqrt(sum), 1e-6F);
  for (float& element : x) element /= norm;
}

float softplus(float x, const Setting& setting) {
  if (setting.is(Fault::softplus_overflows)) return std::log(1.0F + std::exp(x));
  if (setting.is(Fault::softplus_linear_past_2) && x > 2) return x;
  return x > 20 ? x : std::log1p(std::exp(x));
}

// E3
void raw_gates(const RuleTensors& tensors, const Place& place, std::int64_t head, TokenInputs& token, const Setting& setting) {
  const float A_log = read(tensors.A_log.dtype(), tensors.A_log.at(head));
  const float dt_bias = read(tensors.dt_bias.dtype(), tensors.dt_bias.at(head));
  const float a = gate(tensors, tensors.a, place, head);
  const float b = gate(tensors, tensors.b, place, head);
  const float log_decay = -std::exp(A_log) * softplus(a + dt_bias, setting);
  token.decay = setting.is(Fault::raw_decay_is_log) ? log_decay : std::exp(log_decay);
  token.beta = 1.0F / (1.0F + std::exp(-b));
  if (setting.is(Fault::sigmoid_in_bf16)) token.beta = rounded_to(DType::bf16, token.beta);
}

void spoil_gates(TokenInputs& token, const Setting& setting) {
  switch (setting.fault) {
    case Fault::decay_from_log: token.decay = std::exp(token.decay); break;
    case Fault::beta_missing: token.beta = 1; break;
    case Fault::beta_clamped: token.beta = std::min(token.beta, 1.0F); break;
    case Fault::decay_in_half: token.decay = rounded_to(DType::f16, token.decay); break;
    case Fault::decay_in_bf16: token.decay = rounded_to(DType::bf16, token.decay); break;
    default: break;
  }
}

}  // namespace

TokenInputs read_token(const RuleTensors& tensors, const Place& place, std::int64_t head, const Setting& setting) {
  TokenInputs token;
  const auto take = [&](const Rows& rows, std::vector<float>& to, std::int64_t size) {
    to.resize(static_cast<std::size_t>(size));
    read(rows.dtype(), head_row(tensors, rows, place, head, setting), to.data(), size);
  };
  take(tensors.q, token.query, tensors.key_size());
  take(tensors.k, token.key, tensors.key_size());
  take(tensors.v, token.value, tensors.value_size());
  if (tensors.use_qk_l2norm) {
    const Arithmetic arithmetic = rule_arithmetic(setting);
    if (!setting.is(Fault::query_not_normalised)) normalise(token.query, arithmetic, setting);
    normalise(token.key, arithmetic, setting);
  }
  if (tensors.A_log.defined()) {
    raw_gates(tensors, place, head, token, setting);
  } else {
    if (tensors.g.defined()) token.decay = gate(tensors, tensors.g, place, head);
    if (tensors.beta.defined()) token.beta = gate(tensors, tensors.beta, place, head);
  }
  if (setting.fault != Fault::none) spoil_gates(token, setting);
  return token;
}

namespace {

std::byte* output_row(const RuleTensors& tensors, const Place& place, std::int64_t head) {
  return tensors.lead == 1 ? tensors.output.at(place.first, head) : tensors.output.at(place.first, place.second, head);
}

}  // namespace

void write_output(const RuleTensors& tensors, const Place& place, std::int64_t head, const std::vector<float>& output,
                  const Setting& setting) {
  const std::int64_t heads = tensors.heads();
  const bool grouped = tensors.v.size(tensors.lead) > tensors.k.size(tensors.lead);
  if (setting.is(Fault::rule_first_half_of_heads_written) && grouped && head >= (heads + 1) / 2) return;
  auto count = static_cast<std::int64_t>(output.size());
  if (setting.is(Fault::last_value_unwritten) && count % 2 != 0) --count;
  const Rounding rounding = setting.is(Fault::output_toward_zero) ? Rounding::toward_zero : Rounding::nearest;
  write(tensors.output.dtype(), output.data(), output_row(tensors, place, head), count, rounding);
  const bool last =
      head + 1 == heads && place.first + 1 == tensors.output.size(0) && (tensors.lead == 1 || place.second + 1 == tensors.output.size(1));
  if (last && setting.is(Fault::element_past_output_written)) {
    const float zero = 0;
    write(tensors.output.dtype(), &zero, const_cast<std::byte*>(tensors.output.end()), 1);
  }
}

void clear_output(const RuleTensors& tensors, const Place& place, std::int64_t head) {
  clear_row(tensors.output, tensors.lead + 1, output_row(tensors, place, head));
}

void HeadState::load(const Rows& pool, std::int64_t row_number, std::int64_t head) {
  std::fill(state_.begin(), state_.end(), 0.0F);
  if (!pool.has_row(row_number)) {
    if (setting_.is(Fault::fresh_state_by_multiplication) && pool.has_row(0)) {
      Setting right = setting_;
      right.fault = Fault::none;
      HeadState zero(value_size_, key_size_, right);
      zero.load(pool, 0, head);
      for (std::size_t i = 0; i < state_.size(); ++i) state_[i] = zero.state_[i] * 0.0F;
    }
    return;
  }
  for (std::int64_t v = 0; v < value_size_; ++v) read(pool.dtype(), pool.at(row_number, head, v), row(v), key_size_);
  if (setting_.is(Fault::state_transposed) && key_size_ == value_size_) {
    for (std::int64_t v = 0; v < value_size_; ++v) {
      for (std::int64_t k = 0; k < v; ++k) std::swap(row(v)[k], row(k)[v]);
    }
  }
}

void HeadState::store(const Rows& pool, std::int64_t row_number, std::int64_t head) const {
  if (!pool.has_row(row_number)) return;
  Rounding rounding = Rounding::nearest;
  if (setting_.is(Fault::stored_toward_zero)) rounding = Rounding::toward_zero;
  if (setting_.is(Fault::ties_away_from_zero)) rounding = Rounding::ties_away;
  if (setting_.is(Fault::fp8_overflows)) rounding = Rounding::fp8_overflows;
  for (std::int64_t v = 0; v < value_size_; ++v) {
    std::int64_t count = key_size_;
    if (setting_.is(Fault::tails_of_16_bytes_lost) && count * pool.element_bytes() >= 16) count -= count % (16 / pool.element_bytes());
    write(pool.dtype(), row(v), pool.at(row_number, head, v), count, rounding);
  }
  // The bytes between this row and the next belong to nobody.
  const std::int64_t row_elements = pool.extent(1);
  if (setting_.is(Fault::gap_overwritten) && row_number + 1 < pool.size(0) && pool.stride(0) > row_elements) {
    std::memset(pool.at(row_number) + row_elements * pool.element_bytes(), 0,
                static_cast<std::size_t>((pool.stride(0) - row_elements) * pool.element_bytes()));
  }
  if (setting_.is(Fault::neighbour_slot_written) && row_number + 1 < pool.size(0))
    write(pool.dtype(), row(0), pool.at(row_number + 1, head, 0), 1, rounding);
}

void HeadState::keep() {
  const Format stored = setting_.options.stored;
  if (stored == Format::float32) return;
  for (float& x : state_) x = rounded_to(stored, x);
}

std::vector<float> HeadState::step(const TokenInputs& token, float scale) {
  const Arithmetic arithmetic = rule_arithmetic(setting_);
  const Format stored = setting_.options.stored;
  std::vector<float> output(static_cast<std::size_t>(value_size_));
  const auto read_out = [&](std::int64_t v) {
    output[static_cast<std::size_t>(v)] = scale * arithmetic.dot(row(v), token.query.data(), key_size_);
  };
  const bool decays_first = !setting_.is(Fault::decay_after_update) && !setting_.is(Fault::error_before_decay);
  for (std::int64_t v = 0; v < value_size_; ++v) {
    float* state = row(v);
    const auto decay = [&] {
      for (std::int64_t k = 0; k < key_size_; ++k) state[k] *= token.decay;
    };
    if (decays_first) decay();
    if (setting_.is(Fault::output_before_update)) read_out(v);
    const float known = arithmetic.dot(state, token.key.data(), key_size_);
    const float value = token.value[static_cast<std::size_t>(v)];
    float error = token.beta * (value - known);
    if (setting_.is(Fault::beta_on_value_only)) error = token.beta * value - known;
    if (setting_.is(Fault::error_before_decay)) decay();
    error = rounded_to(stored, error);
    arithmetic.add_scaled(state, error, token.key.data(), key_size_);
    if (setting_.is(Fault::decay_after_update)) decay();
    if (!setting_.is(Fault::output_before_update)) read_out(v);
  }
  keep();
  return output;
}

}  // namespace quire::conformance::honest
