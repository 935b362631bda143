// Mutants about drafts (laws A9, B4, C3, C7, F2).
#include "specification.h"

namespace quire::conformance {

using honest::Fault;

namespace {

void state_slots_from_zero(Call& call, Scratch& scratch) {
  if (call.op() == QUIRE_OP_GDN_VERIFY) scratch.change_integers(call, "state_slots", [](std::int64_t row) { return row == -1 ? 0 : row; });
}

}  // namespace

std::vector<Specification> draft_mutants() {
  return {
      within("draft-sees-siblings", "a draft token sees every token at or before its position", {"A9", "B4"}, Fault::draft_sees_siblings),
      within("draft-in-order-of-places", "a draft token sees the tokens that stand before it in the call", {"A9", "B4"},
             Fault::draft_in_order_of_places),
      within("draft-reads-table-to-its-position", "a draft token sees the table's columns past the lane's least position", {"B4"},
             Fault::draft_reads_table_to_its_position),
      within("draft-ignores-window", "the window does not hold between draft tokens", {"A7", "B4"}, Fault::draft_ignores_window),
      within("draft-stored-in-table", "a draft token stores at its position's slot: rejected ones stay", {"A9", "C3"},
             Fault::draft_stored_in_table),
      within("draft-padding-stored", "padding of a draft is stored at its slot", {"A2", "C3"}, Fault::draft_padding_stored),
      within("draft-padding-zeroed", "the values of a draft's padding are zeroed in what is seen", {"C7"}, Fault::draft_padding_zeroed),
      within("parent-is-token-before", "a token's state goes on from the token before it in the call", {"F2"},
             Fault::parent_is_token_before),
      within("parent-is-first-seen", "a token's state goes on from the seen token of least position", {"F2"}, Fault::parent_is_first_seen),
      within("parent-within-window", "a parent below the window is not found", {"F2"}, Fault::parent_within_window),
      within("child-of-rounded-state", "a child goes on from its parent's state as it was stored", {"E5", "F2"},
             Fault::child_of_rounded_state),
      within("root-read-after-stores", "the sequence's row is read again after tokens have stored there", {"F2"},
             Fault::root_read_after_stores),
      within("draft-in-place-order", "tokens run in the order of their places, children before their parents", {"F2"},
             Fault::draft_in_place_order),
      within("last-draft-kept", "the last token's state is kept in the sequence's row, accepted or not", {"F2"}, Fault::last_draft_kept),
      within("verify-padding-updates-row-zero", "a padded sequence of a verify call updates row 0", {"E6", "F2"},
             Fault::verify_padding_updates_row_zero),
      within("verify-padding-output-unwritten", "padded tokens' outputs are left as they were", {"E6", "F2"},
             Fault::verify_padding_output_unwritten),
      changed("state-slot-minus-one-is-zero", "a draft token's state that is stored nowhere goes to row 0", {"F2"}, state_slots_from_zero),
  };
}

}  // namespace quire::conformance
