// Names of axes and laws.
#include "naming.h"

#include <fmt/format.h>
#include <quire/tensor.h>

namespace quire::conformance {

namespace {

using Names = std::vector<std::string_view>;
using Laws = std::vector<std::string>;

bool selects(const Call& call) { return call.index() != nullptr && call.index()->columns != nullptr; }
bool drafts(const Call& call) { return call.index() != nullptr && call.index()->slots != nullptr; }
bool is_tabled(const Call& call) { return call.index() != nullptr && call.index()->kind == QUIRE_INDEX_TABLED; }

// The leading axes' names; further ones are "element".
Names axes_of(const Call& call, std::string_view tensor) {
  if (tensor == "positions") return {"lane", "token"};
  if (tensor == "mask") return {"lane", "token", selects(call) ? "choice" : "column"};
  if (tensor == "seen") return selects(call) ? Names{"lane", "token", "choice"} : Names{"lane", "column"};
  if (tensor == "pool") return {"slot"};
  if (tensor == "k_pool" || tensor == "v_pool") return {"slot", "head"};
  if (tensor == "out" || tensor == "lse") return {"lane", "token", "head"};
  if (tensor == "output") return call.op() == QUIRE_OP_GDN_PREFILL ? Names{"token", "head"} : Names{"lane", "token", "head"};
  if (tensor == "output_state" || tensor == "state_checkpoints" || tensor == "state_pool") return {"slot", "head", "v", "k"};
  return {"sequence"};
}

// ---- the gated delta rule ----

bool is_verify(const Call& call) { return call.op() == QUIRE_OP_GDN_VERIFY; }

bool normalises(const Call& call) {
  switch (call.op()) {
    case QUIRE_OP_GDN_PREFILL: return static_cast<const quire_gdn_prefill_args*>(call.args())->use_qk_l2norm != 0;
    case QUIRE_OP_GDN_DECODE: return static_cast<const quire_gdn_decode_args*>(call.args())->use_qk_l2norm != 0;
    default: return static_cast<const quire_gdn_verify_args*>(call.args())->use_qk_l2norm != 0;
  }
}

bool share_memory(const Call& call, std::string_view one, std::string_view other) {
  const quire_tensor *a = call.tensor(one), *b = call.tensor(other);
  return a != nullptr && b != nullptr && a->data != nullptr && a->data == b->data;
}

// E8: what is read and written, or written twice over, is one pool. In decode and verify it always is.
bool is_one_pool(const Call& call) {
  return share_memory(call, "initial_state", "output_state") || share_memory(call, "initial_state", "state_checkpoints") ||
         share_memory(call, "output_state", "state_checkpoints");
}

std::int64_t number_at(const quire_tensor& numbers, std::int64_t n) {
  const auto dtype = static_cast<DType>(numbers.dtype);
  return read_integer(dtype, static_cast<const std::byte*>(numbers.data) + n * numbers.strides[0] * size_of(dtype));
}

// E6: a read row outside the pool pads a sequence of decode and verify.
bool is_padded_sequence(const Call& call, std::int64_t lane) {
  const std::int64_t row = number_at(*call.tensor("state_indices"), lane);
  return row < 0 || row >= call.tensor("state_pool")->shape[0];
}

// E4: the call's own final state of a sequence without tokens is its initial one.
bool is_untouched_final_state(const Call& call, std::int64_t sequence) {
  if (call.op() != QUIRE_OP_GDN_PREFILL || static_cast<const quire_gdn_prefill_args*>(call.args())->output_state_is_fresh == 0)
    return false;
  const quire_tensor& bounds = *call.tensor("cu_seqlens");
  return sequence + 1 < bounds.shape[0] && number_at(bounds, sequence) == number_at(bounds, sequence + 1);
}

// What makes a number: raw gates, normalised keys, the rule. Then what says where it comes from: one pool for several things, one of
// several sequences, a row by number.
void add_rule(const Call& call, Laws& laws) {
  if (call.tensor("A_log") != nullptr) laws.emplace_back("E3");
  if (normalises(call)) laws.emplace_back("E2");
  laws.emplace_back("E1");
  if (is_one_pool(call)) laws.emplace_back("E8");
  if (const quire_tensor* bounds = call.tensor("cu_seqlens"); bounds != nullptr && bounds->shape[0] > 2) laws.emplace_back("E4");
  if (call.tensor("state_indices") != nullptr) laws.emplace_back("E6");
}

Laws rule_output_laws(const Call& call, std::span<const std::int64_t> indices) {
  if (call.op() != QUIRE_OP_GDN_PREFILL && is_padded_sequence(call, indices[0])) return is_verify(call) ? Laws{"E6", "F2"} : Laws{"E6"};
  Laws laws;
  if (is_verify(call)) laws.emplace_back("F2");
  add_rule(call, laws);
  return laws;
}

Laws rule_state_laws(const Call& call, std::string_view tensor, std::int64_t row, RowUse use) {
  if (tensor == "output_state" && is_untouched_final_state(call, row)) return {"E4"};
  Laws laws;
  if (is_verify(call)) laws.emplace_back("F2");
  if (use == RowUse::kept) {
    if (is_one_pool(call)) laws.emplace_back("E8");
    laws.emplace_back("E6");
    return laws;
  }
  if (use == RowUse::checkpoint) laws.emplace_back("E7");
  if (call.tensor(tensor)->dtype != QUIRE_F32) laws.emplace_back("E5");
  add_rule(call, laws);
  return laws;
}

}  // namespace

std::string place_of(const Call& call, std::string_view tensor, std::span<const std::int64_t> indices) {
  const Names names = axes_of(call, tensor);
  std::string text;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    text += fmt::format("{}{} {}", axis == 0 ? "" : ", ", axis < names.size() ? names[axis] : "element", indices[axis]);
  }
  return text;
}

std::vector<std::string> laws_in_force(const Call& call, std::string_view tensor, std::span<const std::int64_t> indices, RowUse use) {
  switch (call.op()) {
    case QUIRE_OP_POSITIONS: return {"A12"};
    case QUIRE_OP_ADVANCE: return {"A11"};
    case QUIRE_OP_MASK: return {selects(call) ? "B5" : drafts(call) ? "B4" : is_tabled(call) ? "B1" : "B2"};
    case QUIRE_OP_EXTEND:
      if (tensor == "pool") return {"C3"};
      return {selects(call) ? "C6" : drafts(call) || !is_tabled(call) ? "C7" : "C5"};
    case QUIRE_OP_ATTEND:
      if (tensor == "k_pool" || tensor == "v_pool") return {"C3"};
      return {tensor == "lse" ? "D3" : "D1"};
    case QUIRE_OP_GDN_PREFILL_SLOTS: return {"E11"};
    case QUIRE_OP_GDN_DECODE_SLOTS: return {"E12"};
    default: return tensor == "output" ? rule_output_laws(call, indices) : rule_state_laws(call, tensor, indices[0], use);
  }
}

}  // namespace quire::conformance
