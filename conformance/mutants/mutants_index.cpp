// Mutants about what tokens are and see (laws A, B).
#include "specification.h"

#include <algorithm>

namespace quire::conformance {

using honest::Fault;

namespace {

bool has_index(const Call& call) { return call.index() != nullptr; }

void widen_window(Call& call, Scratch&) {
  if (has_index(call) && call.index()->window > 0) ++call.changeable_index().window;
}
void narrow_window(Call& call, Scratch&) {
  if (has_index(call) && call.index()->window > 1) --call.changeable_index().window;
}
void drop_window(Call& call, Scratch&) {
  if (has_index(call)) call.changeable_index().window = 0;
}
void drop_window_of_mask(Call& call, Scratch& scratch) {
  if (call.op() == QUIRE_OP_MASK) drop_window(call, scratch);
}
void drop_row(Call& call, Scratch&) {
  if (has_index(call)) call.changeable_index().row = nullptr;
}
void rows_from_zero(Call& call, Scratch& scratch) {
  scratch.change_integers(call, "index.row", [](std::int64_t row) { return row == -1 ? 0 : row; });
}
void clamp_rows(Call& call, Scratch& scratch) {
  if (!has_index(call) || call.index()->table == nullptr) return;
  const std::int64_t last = call.index()->table->shape[0] - 1;
  scratch.change_integers(call, "index.row", [last](std::int64_t row) { return row < -1 ? 0 : std::min(row, last); });
}
void only_minus_one_is_padding(Call& call, Scratch& scratch) {
  scratch.change_integers(call, "index.pos", [](std::int64_t t) { return t < -1 ? 0 : t; });
}
void positions_one_later(Call& call, Scratch& scratch) {
  if (call.op() == QUIRE_OP_MASK || call.op() == QUIRE_OP_ATTEND) {
    if (call.index()->kind == QUIRE_INDEX_TABLED)
      scratch.change_integers(call, "index.pos", [](std::int64_t t) { return t < 0 ? t : t + 1; });
  }
}
void dense_rows(quire_tensor& tensor) {
  auto* strides = const_cast<std::int64_t*>(tensor.strides);  // the call's own
  std::int64_t step = 1;
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= tensor.shape[axis];
  }
}
void ignore_input_strides(Call& call, Scratch&) {
  for (const CallTensor& entry : call.tensors()) {
    if (entry.role == TensorRole::read) dense_rows(*entry.tensor);
  }
}
void ignore_pool_strides(Call& call, Scratch&) {
  for (const CallTensor& entry : call.tensors()) {
    if (entry.role == TensorRole::update || entry.name == "initial_state") dense_rows(*entry.tensor);
  }
}

}  // namespace

std::vector<Specification> index_mutants() {
  return {
      changed("window-one-more", "a window of w shows w + 1 positions", {"A7", "B1", "B2", "B4"}, widen_window),
      changed("window-one-less", "a window of w shows w - 1 positions", {"A7", "B1", "B2", "B4"}, narrow_window),
      changed("window-ignored", "every call is causal without its window", {"A7", "B1", "B2", "B4"}, drop_window),
      changed("mask-ignores-window", "mask is causal without the window", {"A7", "B6"}, drop_window_of_mask),
      changed("position-one-later", "a token sees as if it stood one position later, stores there too", {"B1", "B6", "C3"},
              positions_one_later),
      within("own-column-unseen", "a token does not see its own position (< for <=)", {"B1"}, Fault::own_column_unseen),
      within("next-column-seen", "a token sees the position after its own", {"B1"}, Fault::next_column_seen),
      within("first-column-always-seen", "the first column stays visible below the window", {"A7", "B1", "B4"},
             Fault::first_column_always_seen),
      within("block-seen-from-its-start", "a block is seen once its first position is reached", {"A10", "B1", "B3"},
             Fault::block_seen_from_its_start),
      within("block-window-from-first-position", "the window takes a block by its first position", {"A7", "A10", "B1", "B3"},
             Fault::block_window_from_first_position),
      within("packed-sees-across", "packed tokens see the sequences before their own", {"A6", "B2"}, Fault::packed_sees_across),
      within("whole-sees-padding", "padding on the left of a whole lane is seen", {"A2", "B2", "D2"}, Fault::whole_sees_padding),
      within("choices-unchecked", "a chosen column is read whether the token sees it or not", {"A8", "B5", "C6"}, Fault::choices_unchecked),
      within("choices-clamped", "a choice outside the columns is taken as the nearest one", {"B5", "C6"}, Fault::choices_clamped),
      within("choices-sorted", "a selection's columns come in ascending order", {"A8", "C6"}, Fault::choices_sorted),
      within("duplicate-choices-once", "a column chosen twice is read once", {"B5", "C6", "D1"}, Fault::duplicate_choices_once),
      within("positions-unclamped", "positions past the table are handed out as they are", {"A12"}, Fault::positions_unclamped),
      within("positions-keep-padding", "padding has position -1", {"A12"}, Fault::positions_keep_padding),
      within("positions-in-blocks", "positions count blocks where the index is read in blocks", {"A12"}, Fault::positions_in_blocks),
      within("mask-needs-slot", "a hole is masked", {"B1", "B6"}, Fault::mask_needs_slot),
      within("mask-true-is-255", "true is written as 255", {"B6"}, Fault::mask_true_is_255),
      within("advance-from-last-token", "the next position follows the last token, padding or not", {"A11"}, Fault::advance_from_last_token,
             Needs::advance_op),
      within("advance-by-tokens", "the next position is as many further as the call has tokens", {"A11"}, Fault::advance_by_tokens,
             Needs::advance_op),
      changed("row-ignored", "lane b reads row b of the table whatever `row` says", {"A1"}, drop_row),
      changed("row-minus-one-is-zero", "a lane without a row uses row 0", {"A2"}, rows_from_zero),
      changed("row-clamped", "a row outside the table is taken as the nearest one", {"A2"}, clamp_rows),
      changed("negative-position-is-first", "only -1 is padding; smaller positions are taken as 0", {"A2"}, only_minus_one_is_padding),
      changed("input-strides-ignored", "inputs are read as if they were dense", {"C1", "D1", "E1"}, ignore_input_strides),
      changed("pool-strides-ignored", "pools are addressed as if their rows were dense", {"C3", "E8"}, ignore_pool_strides),
  };
}

}  // namespace quire::conformance
