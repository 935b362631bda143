// Mutants about attention (laws D).
#include "specification.h"

namespace quire::conformance {

using honest::Fault;

namespace {

void no_scale(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_ATTEND) call.as<quire_attend_args>().scale = 1;
}
void scale_off(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_ATTEND) call.as<quire_attend_args>().scale *= 1 + 0x1p-12;
}
void no_softcap(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_ATTEND) call.as<quire_attend_args>().softcap = 0;
}
void no_sinks(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_ATTEND) call.as<quire_attend_args>().sinks = nullptr;
}

}  // namespace

std::vector<Specification> attention_mutants() {
  return {
      within("holes-masked", "an unallocated column has no weight", {"B1", "D2"}, Fault::holes_masked),
      within("unseen-times-zero", "unseen columns are weighed with zero, so that their NaN leaks", {"C8", "D2"}, Fault::unseen_times_zero),
      within("unseen-with-finite-bias", "unseen columns have score -10000 instead of none", {"C8", "D2", "D3"},
             Fault::unseen_with_finite_bias),
      within("nothing-seen-is-nan", "a token that sees nothing gives NaN (0 / 0)", {"D3"}, Fault::nothing_seen_is_nan),
      within("lse-of-nothing-is-zero", "a token that sees nothing has lse 0", {"D3"}, Fault::lse_of_nothing_is_zero),
      within("lse-base-2", "lse is a logarithm to base 2", {"D3"}, Fault::lse_base_2),
      within("lse-in-half", "lse is rounded to half precision", {"D3"}, Fault::lse_in_half),
      within("kv-heads-interleaved", "query head h reads kv head h mod Hkv", {"D1"}, Fault::kv_heads_interleaved),
      within("attend-first-half-of-heads", "with grouped heads only the first half of the outputs is written", {"D1"},
             Fault::first_half_of_heads_written),
      changed("attend-scale-missing", "scores are not scaled", {"D1"}, no_scale),
      changed("attend-scale-off", "the scale of scores is off by one part in 2^12", {"D1"}, scale_off),
      changed("softcap-ignored", "the softcap is ignored", {"D4"}, no_softcap),
      within("softcap-before-scale", "the softcap is applied to scores before their scale", {"D4"}, Fault::softcap_before_scale),
      changed("sinks-ignored", "the sinks are ignored", {"D3", "D4"}, no_sinks),
      within("sink-on-padding", "a padded token's lse is its head's sink", {"D3", "D4"}, Fault::sink_on_padding),
      within("sink-per-kv-head", "the sink is taken by kv head", {"D4"}, Fault::sink_per_kv_head),
      within("sink-has-a-value", "the sink brings the first column's value", {"D4"}, Fault::sink_has_a_value),
      within("sink-not-in-lse", "lse leaves the sink out", {"D4"}, Fault::sink_not_in_lse),
      within("value-pool-not-extended", "the call's values are not stored, its keys are", {"C3", "D1"}, Fault::value_pool_not_extended),
      within("no-maximum-subtracted", "exp is taken of the scores themselves and overflows", {"D1", "D3"}, Fault::no_maximum_subtracted),
      within("vector-reads-past-row", "a dot product reads whole vectors of four past the row", {"D1", "D2"}, Fault::vector_reads_past_row),
      within("attend-products-tf32", "products of tf32 operands under a float32 contract", {"D1"}, Fault::attend_products_tf32),
      within("attend-products-bf16", "products of bf16 operands under a float32 contract", {"D1"}, Fault::attend_products_bf16),
      within("attend-in-half", "products and sums in half precision under a float32 contract", {"D1"}, Fault::attend_in_half),
      within("weights-in-bf16", "softmax weights are rounded to bf16 before the values are weighed", {"D1"}, Fault::weights_in_bf16),
  };
}

}  // namespace quire::conformance
