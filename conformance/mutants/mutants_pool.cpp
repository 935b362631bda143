// Mutants about storing into pools and reading them (laws C).
#include "specification.h"

namespace quire::conformance {

using honest::Fault;

std::vector<Specification> pool_mutants() {
  return {
      within("padding-stored-at-first-column", "padding is stored at the slot of position 0", {"A2", "C3", "C4"},
             Fault::padding_stored_at_first_column),
      within("padding-stored-at-last-slot", "padding is stored at slot -1, the pool's last", {"A2", "C3", "C4"},
             Fault::padding_stored_at_last_slot),
      within("dropped-store-at-slot-zero", "a token without a slot stores at slot 0", {"A2", "C3", "C4"},
             Fault::dropped_store_at_slot_zero),
      within("hole-reads-slot-zero", "an unallocated column reads slot 0", {"A1", "B1", "C5", "C6", "D2"}, Fault::hole_reads_slot_zero),
      within("slot-past-pool-clamped", "a slot past the pool is taken as the last one", {"A2", "C3", "C5", "D2"},
             Fault::slot_past_pool_clamped),
      within("block-stored-at-its-first-token", "a block is stored by its first token", {"A10", "C3"},
             Fault::block_stored_at_its_first_token),
      within("every-token-stores-its-block", "every token of a block stores at its slot", {"C3"}, Fault::every_token_stores_its_block),
      within("past-context-stored-at-last-column", "a token past the table stores at the last column", {"B7", "C3"},
             Fault::past_context_stored_at_last_column),
      within("past-context-in-next-row", "a token past the table stores at the slots of the next row", {"B7", "C3"},
             Fault::past_context_in_next_row),
      within("reads-before-stores", "what is read is the pool from before the call", {"C2", "D1"}, Fault::reads_before_stores),
      within("lanes-one-after-another", "a lane reads before later lanes of its row have stored", {"C2"}, Fault::lanes_one_after_another),
      within("columns-past-positions-read", "columns past the lane's positions are not zeroed", {"C5"}, Fault::columns_past_positions_read),
      within("columns-below-window-read", "columns below every token's window are not zeroed", {"A7", "C5"},
             Fault::columns_below_window_read),
      within("columns-between-windows-read", "columns between two tokens' windows are not zeroed", {"C5"},
             Fault::columns_between_windows_read),
      within("closing-token-without-padding", "the token that closes a block is found without counting the padding", {"B3", "C7"},
             Fault::closing_token_without_padding),
      within("neighbour-slot-written", "the slot after the target is written too", {"C4", "E8"}, Fault::neighbour_slot_written),
      within("gap-overwritten", "the gap between two rows of a pool is cleared", {"C4", "E8"}, Fault::gap_overwritten),
      within("rows-copied-in-16-bytes", "a row's last 16-byte store goes past its end", {"C4", "E8"}, Fault::rows_copied_in_16_bytes,
             Needs::guards),
      within("tails-of-16-bytes-lost", "a row's bytes past the last multiple of 16 are not copied", {"C1", "E1"},
             Fault::tails_of_16_bytes_lost),
      within("offsets-of-32-bits", "element offsets are formed in 32 bits and wrap at 2^31", {"C3", "C5", "E8"}, Fault::offsets_of_32_bits,
             Needs::big_pool),
      within("byte-offsets-of-32-bits", "byte offsets are formed in 32 bits and wrap at 2^31 bytes", {"C3", "C5", "E8"},
             Fault::byte_offsets_of_32_bits, Needs::big_pool),
      within("negative-zero-lost", "float32 rows are copied by adding them to zero", {"C1"}, Fault::negative_zero_lost),
      within("float64-through-float32", "float64 rows are copied through float32", {"C1"}, Fault::float64_through_float32),
  };
}

}  // namespace quire::conformance
