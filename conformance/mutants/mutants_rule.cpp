// Mutants about the gated delta rule itself: its formula, its inputs and its arithmetic (laws E, E1-E3, E5).
#include "specification.h"

namespace quire::conformance {

using honest::Fault;

namespace {

double* scale_of(Call& call) {
  switch (call.op()) {
    case QUIRE_OP_GDN_PREFILL: return &call.as<quire_gdn_prefill_args>().scale;
    case QUIRE_OP_GDN_DECODE: return &call.as<quire_gdn_decode_args>().scale;
    case QUIRE_OP_GDN_VERIFY: return &call.as<quire_gdn_verify_args>().scale;
    default: return nullptr;
  }
}
void no_scale(Call& call, Scratch&) {
  if (double* scale = scale_of(call)) *scale = 1;
}
void scale_off(Call& call, Scratch&) {
  if (double* scale = scale_of(call)) *scale *= 1 + 0x1p-12;
}
void decode_without_norm(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_GDN_DECODE) call.as<quire_gdn_decode_args>().use_qk_l2norm = 0;
  if (call.op() == QUIRE_OP_GDN_VERIFY) call.as<quire_gdn_verify_args>().use_qk_l2norm = 0;
}
void prefill_with_norm(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_GDN_PREFILL) call.as<quire_gdn_prefill_args>().use_qk_l2norm = 1;
}
void no_gates(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_GDN_PREFILL) call.as<quire_gdn_prefill_args>().g = nullptr;
  if (call.op() == QUIRE_OP_GDN_VERIFY) call.as<quire_gdn_verify_args>().g = nullptr;
}

Specification whole_sequence_log_sums() {
  Specification mutant = within("decays-from-log-sums", "decays come from sums of logs over the whole sequence, NaN after a decay of 0",
                                {"E1"}, Fault::decays_from_log_sums);
  mutant.options.recurrence = HonestOptions::Recurrence::chunked;
  mutant.options.chunk_length = 1 << 20;
  mutant.options.decay_from_log_sums = true;
  return mutant;
}

}  // namespace

std::vector<Specification> rule_mutants() {
  return {
      within("rule-heads-interleaved", "head h reads head h mod Hx of each input", {"E1"}, Fault::rule_heads_interleaved),
      within("rule-first-half-of-heads", "with more value heads than key heads only the first half of the outputs is written", {"E1"},
             Fault::rule_first_half_of_heads_written),
      within("state-transposed", "states are [K, V] where K = V", {"E1"}, Fault::state_transposed),
      within("decay-from-log", "g is taken as a logarithm", {"E1"}, Fault::decay_from_log),
      within("raw-decay-is-log", "the decay from raw inputs is left as a logarithm", {"E3"}, Fault::raw_decay_is_log),
      changed("decay-ignored", "g is ignored in prefill and verify", {"E1"}, no_gates),
      within("decay-after-update", "the state decays after the update", {"E1"}, Fault::decay_after_update),
      within("error-before-decay", "the error is taken from the state before its decay", {"E1"}, Fault::error_before_decay),
      within("beta-missing", "beta is 1", {"E1"}, Fault::beta_missing),
      within("beta-on-value-only", "beta scales the value and not what the state knows", {"E1"}, Fault::beta_on_value_only),
      within("beta-clamped", "beta above 1 is taken as 1", {"E1"}, Fault::beta_clamped),
      within("output-before-update", "the output is read before the token's own update", {"E1"}, Fault::output_before_update),
      within("epsilon-1e-5", "the l2norm's epsilon is 1e-5", {"E2"}, Fault::epsilon_1e_5),
      within("epsilon-outside-root", "the l2norm's epsilon is added to the root", {"E2"}, Fault::epsilon_outside_root),
      within("epsilon-as-least-norm", "the l2norm's epsilon is the least norm", {"E2"}, Fault::epsilon_as_least_norm),
      within("query-not-normalised", "the l2norm is applied to k alone", {"E2"}, Fault::query_not_normalised),
      changed("decode-without-l2norm", "decode and verify never normalise", {"E2"}, decode_without_norm),
      changed("prefill-with-l2norm", "prefill always normalises", {"E2"}, prefill_with_norm),
      changed("rule-scale-missing", "outputs are not scaled", {"E1"}, no_scale),
      changed("rule-scale-off", "the scale of outputs is off by one part in 2^12", {"E1"}, scale_off),
      within("softplus-overflows", "softplus is log(1 + exp(x)) for every x, infinite past 88", {"E3"}, Fault::softplus_overflows),
      within("softplus-linear-past-2", "softplus is x itself past 2 instead of 20", {"E3"}, Fault::softplus_linear_past_2),
      within("sigmoid-in-bf16", "beta from raw inputs is rounded to bf16", {"E3"}, Fault::sigmoid_in_bf16),
      within("decay-in-half", "decays are rounded to half precision", {"E1"}, Fault::decay_in_half),
      within("decay-in-bf16", "decays are rounded to bf16", {"E1"}, Fault::decay_in_bf16),
      whole_sequence_log_sums(),
      within("rule-products-tf32", "products of tf32 operands under a float32 contract", {"E1"}, Fault::rule_products_tf32),
      within("rule-products-bf16", "products of bf16 operands under a float32 contract", {"E1"}, Fault::rule_products_bf16),
      within("rule-in-half", "products and sums in half precision under a float32 contract", {"E1"}, Fault::rule_in_half),
      within("state-rounded-every-token", "prefill rounds the state to its dtype after every token", {"E5"},
             Fault::state_rounded_every_token),
      within("state-rounded-to-bf16-every-64", "prefill rounds the state to bf16 every 64 tokens", {"E5"},
             Fault::state_rounded_to_bf16_every_64),
      within("stored-toward-zero", "states are rounded toward zero when they are stored", {"E5"}, Fault::stored_toward_zero),
      within("ties-away-from-zero", "states half way between two values are rounded away from zero", {"E5"}, Fault::ties_away_from_zero),
      within("fp8-overflows", "a state too large for fp8 becomes infinity or NaN", {"E5"}, Fault::fp8_overflows),
  };
}

}  // namespace quire::conformance
