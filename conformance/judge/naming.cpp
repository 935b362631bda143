// Names of axes and laws.
#include "naming.h"

#include <fmt/format.h>

#include <vector>

namespace quire::conformance {

namespace {

using Names = std::vector<std::string_view>;

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

}  // namespace

std::string place_of(const Call& call, std::string_view tensor, std::span<const std::int64_t> indices) {
  const Names names = axes_of(call, tensor);
  std::string text;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    text += fmt::format("{}{} {}", axis == 0 ? "" : ", ", axis < names.size() ? names[axis] : "element", indices[axis]);
  }
  return text;
}

std::string law_of(const Call& call, std::string_view tensor) {
  switch (call.op()) {
    case QUIRE_OP_POSITIONS: return "A12";
    case QUIRE_OP_ADVANCE: return "A11";
    case QUIRE_OP_MASK: return selects(call) ? "B5" : drafts(call) ? "B4" : is_tabled(call) ? "B1" : "B2";
    case QUIRE_OP_EXTEND:
      if (tensor == "pool") return "C3";
      return selects(call) ? "C6" : drafts(call) || !is_tabled(call) ? "C7" : "C5";
    case QUIRE_OP_ATTEND:
      if (tensor == "k_pool" || tensor == "v_pool") return "C3";
      return tensor == "lse" ? "D3" : "D1";
    case QUIRE_OP_GDN_PREFILL:
      if (tensor == "state_checkpoints") return "E7";
      return tensor == "output_state" ? "E6" : "E1";
    case QUIRE_OP_GDN_DECODE: return tensor == "state_pool" ? "E6" : "E1";
    case QUIRE_OP_GDN_VERIFY: return "F2";
    case QUIRE_OP_GDN_PREFILL_SLOTS: return "E11";
    default: return "E12";
  }
}

}  // namespace quire::conformance
