// Mutants about pools of states, checkpoints and page tables (laws E4, E6-E14).
#include "specification.h"

#include <algorithm>

namespace quire::conformance {

using honest::Fault;

namespace {

std::int64_t from_zero(std::int64_t number) { return number == -1 ? 0 : number; }

void read_rows_from_zero(Call& call, Scratch& scratch) {
  if (call.op() == QUIRE_OP_GDN_PREFILL) scratch.change_integers(call, "state_indices", from_zero);
}
void output_rows_from_zero(Call& call, Scratch& scratch) {
  if (call.op() == QUIRE_OP_GDN_PREFILL || call.op() == QUIRE_OP_GDN_DECODE)
    scratch.change_integers(call, "output_state_indices", from_zero);
}
void checkpoint_rows_from_zero(Call& call, Scratch& scratch) { scratch.change_integers(call, "checkpoint_state_indices", from_zero); }
void clamp_rows(Call& call, Scratch& scratch) {
  if (call.op() < QUIRE_OP_GDN_PREFILL || call.op() > QUIRE_OP_GDN_VERIFY) return;
  const quire_tensor* pool = call.tensor(call.op() == QUIRE_OP_GDN_PREFILL ? "initial_state" : "state_pool");
  if (pool == nullptr) return;
  const std::int64_t last = pool->shape[0] - 1;
  scratch.change_integers(call, "state_indices", [last](std::int64_t row) { return std::min(row, last); });
}
void no_output_rows(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_GDN_PREFILL) call.as<quire_gdn_prefill_args>().output_state_indices = nullptr;
  if (call.op() == QUIRE_OP_GDN_DECODE) call.as<quire_gdn_decode_args>().output_state_indices = nullptr;
}
void no_initial_state(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_GDN_PREFILL) call.as<quire_gdn_prefill_args>().initial_state = nullptr;
}
void no_read_rows(Call& call, Scratch&) {
  if (call.op() != QUIRE_OP_GDN_PREFILL || call.tensor("output_state_indices") == nullptr) return;
  call.as<quire_gdn_prefill_args>().state_indices = nullptr;
}
void no_checkpoint_rows(Call& call, Scratch&) {
  if (call.op() == QUIRE_OP_GDN_PREFILL) call.as<quire_gdn_prefill_args>().checkpoint_state_indices = nullptr;
}

}  // namespace

std::vector<Specification> state_mutants() {
  return {
      changed("state-row-minus-one-is-zero", "prefill starts from row 0 where it should start from zero", {"E6"}, read_rows_from_zero),
      changed("output-row-minus-one-is-zero", "a skipped store goes to row 0", {"E6"}, output_rows_from_zero),
      within("skipped-store-at-read-row", "a skipped store goes to the row that was read", {"E6"}, Fault::skipped_store_at_read_row),
      changed("checkpoint-row-minus-one-is-zero", "a skipped checkpoint goes to row 0", {"E7"}, checkpoint_rows_from_zero),
      changed("state-row-clamped", "a read row past the pool is taken as the last one", {"E6"}, clamp_rows),
      changed("output-row-ignored", "the final state goes to the row that was read", {"E6"}, no_output_rows),
      changed("read-row-ignored", "sequence i reads row i", {"E6"}, no_read_rows),
      changed("prefix-ignored", "every sequence starts from zero", {"E6", "E11"}, no_initial_state),
      within("read-row-written-too", "the final state is stored in the row that was read as well, a shared prefix page",
             {"E6", "E8", "E11"}, Fault::read_row_written_too),
      within("fresh-state-by-multiplication", "a fresh state is row 0 times zero, so that its NaN leaks", {"E6", "E8"},
             Fault::fresh_state_by_multiplication),
      within("fresh-token-reads-old-state", "a new sequence of one token goes on from its row's old state", {"E6"},
             Fault::fresh_token_reads_old_state),
      within("state-carried-over", "a sequence goes on from the state of the one before it", {"E4"}, Fault::state_carried_over),
      within("zero-length-touched", "a sequence without tokens clears its row", {"E4", "E14"}, Fault::zero_length_touched),
      within("zero-length-fresh-unwritten", "a sequence without tokens has no state in a result that the call allocates", {"E4"},
             Fault::zero_length_fresh_unwritten),
      within("zero-length-swallowed", "sequences without tokens are not counted, so that later ones use their rows", {"E4"},
             Fault::zero_length_swallowed),
      within("chunk-carry-lost", "the state is lost between two chunks of 64 tokens", {"E1", "E4"}, Fault::chunk_carry_lost),
      within("final-state-of-last-full-chunk", "the final state leaves out the last chunk's tokens where it is not full", {"E6"},
             Fault::final_state_of_last_full_chunk),
      within("checkpoint-one-early", "a checkpoint is the state one token early", {"E7"}, Fault::checkpoint_one_early),
      within("checkpoint-one-late", "a checkpoint is the state one token late", {"E7"}, Fault::checkpoint_one_late),
      within("checkpoint-is-final-state", "checkpoints hold the final state", {"E7"}, Fault::checkpoint_is_final_state),
      within("checkpoint-at-chunk-end", "a checkpoint is the state at the end of the chunk of 64 that reaches its place", {"E7"},
             Fault::checkpoint_at_chunk_end),
      within("checkpoint-at-end-missing", "a boundary that is also the end has no checkpoint", {"E7", "E11"},
             Fault::checkpoint_at_end_missing),
      within("checkpoints-from-first-new-token", "checkpoints are counted from the first new token, not from the sequence's start", {"E7"},
             Fault::checkpoints_from_first_new_token),
      within("checkpoint-starts-running-sum", "checkpoint_cu_starts is taken to be a running sum and not read", {"E7"},
             Fault::checkpoint_starts_running_sum),
      changed("checkpoint-rows-ignored", "the ordinal is the row although rows are given", {"E7"}, no_checkpoint_rows),
      within("decode-padding-updates-row-zero", "a padded sequence of a decode call updates row 0", {"E6", "E14"},
             Fault::decode_padding_updates_row_zero),
      within("decode-padding-output-unwritten", "a padded sequence's output is left as it was", {"E6"},
             Fault::decode_padding_output_unwritten),
      within("prefix-page-one-late", "the page of the first new token is read, not that of the last prefix token", {"E11"},
             Fault::prefix_page_one_late),
      within("checkpoint-starts-rounded-up", "the first checkpoint page is the one after the prefix's", {"E11"},
             Fault::checkpoint_starts_rounded_up),
      within("prefix-in-whole-pages", "the prefix is rounded down to whole pages", {"E7", "E11"}, Fault::prefix_in_whole_pages),
      within("empty-sequence-has-output-row", "a sequence without new tokens has its last page as output row", {"E11"},
             Fault::empty_sequence_has_output_row),
      within("decode-reads-last-page", "a token that opens a page reads that page", {"E12"}, Fault::decode_reads_last_page),
  };
}

}  // namespace quire::conformance
