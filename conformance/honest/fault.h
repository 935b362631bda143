// The mistakes that can be built into the honest backend; each is one line of its code gone wrong.
#pragma once

#include "honest.h"

namespace quire::conformance::honest {

enum class Fault {
  none,

  // addresses and copies
  offsets_of_32_bits,
  byte_offsets_of_32_bits,
  tails_of_16_bytes_lost,
  rows_copied_in_16_bytes,
  negative_zero_lost,
  float64_through_float32,
  neighbour_slot_written,
  gap_overwritten,
  element_past_output_written,

  // rounding
  stored_toward_zero,
  output_toward_zero,
  ties_away_from_zero,
  fp8_overflows,

  // which token stores where
  padding_stored_at_first_column,
  padding_stored_at_last_slot,
  dropped_store_at_slot_zero,
  block_stored_at_its_first_token,
  every_token_stores_its_block,
  past_context_stored_at_last_column,
  past_context_in_next_row,
  draft_stored_in_table,
  draft_padding_stored,
  reads_before_stores,
  lanes_one_after_another,
  value_pool_not_extended,

  // who sees what
  block_seen_from_its_start,
  block_window_from_first_position,
  own_column_unseen,
  next_column_seen,
  first_column_always_seen,
  draft_sees_siblings,
  draft_in_order_of_places,
  draft_reads_table_to_its_position,
  draft_ignores_window,
  packed_sees_across,
  whole_sees_padding,
  choices_unchecked,
  choices_clamped,
  closing_token_without_padding,

  // what is read
  hole_reads_slot_zero,
  slot_past_pool_clamped,
  columns_past_positions_read,
  columns_below_window_read,
  columns_between_windows_read,
  draft_padding_zeroed,
  choices_sorted,
  duplicate_choices_once,

  // positions and masks
  positions_unclamped,
  positions_keep_padding,
  positions_in_blocks,
  mask_needs_slot,
  mask_true_is_255,
  advance_from_last_token,
  advance_by_tokens,

  // attention
  holes_masked,
  unseen_times_zero,
  unseen_with_finite_bias,
  nothing_seen_is_nan,
  lse_of_nothing_is_zero,
  kv_heads_interleaved,
  softcap_before_scale,
  sink_on_padding,
  sink_per_kv_head,
  sink_has_a_value,
  sink_not_in_lse,
  lse_base_2,
  lse_in_half,
  no_maximum_subtracted,
  attend_products_tf32,
  attend_products_bf16,
  attend_in_half,
  weights_in_bf16,
  vector_reads_past_row,
  first_half_of_heads_written,
  last_value_unwritten,

  // the rule
  rule_heads_interleaved,
  decay_from_log,
  raw_decay_is_log,
  decay_after_update,
  error_before_decay,
  beta_missing,
  beta_on_value_only,
  beta_clamped,
  output_before_update,
  epsilon_outside_root,
  epsilon_as_least_norm,
  epsilon_1e_5,
  query_not_normalised,
  softplus_overflows,
  softplus_linear_past_2,
  sigmoid_in_bf16,
  decay_in_half,
  decay_in_bf16,
  decays_from_log_sums,
  rule_products_tf32,
  rule_products_bf16,
  rule_in_half,
  state_transposed,
  state_rounded_every_token,
  state_rounded_to_bf16_every_64,
  rule_first_half_of_heads_written,

  // pools of states
  fresh_state_by_multiplication,
  fresh_token_reads_old_state,
  state_carried_over,
  zero_length_touched,
  zero_length_fresh_unwritten,
  zero_length_swallowed,
  skipped_store_at_read_row,
  read_row_written_too,
  chunk_carry_lost,
  final_state_of_last_full_chunk,
  checkpoint_one_early,
  checkpoint_one_late,
  checkpoint_is_final_state,
  checkpoint_at_chunk_end,
  checkpoint_at_end_missing,
  checkpoints_from_first_new_token,
  checkpoint_starts_running_sum,
  decode_padding_updates_row_zero,
  decode_padding_output_unwritten,

  // drafts of states
  parent_is_token_before,
  parent_is_first_seen,
  parent_within_window,
  child_of_rounded_state,
  root_read_after_stores,
  draft_in_place_order,
  last_draft_kept,
  verify_padding_updates_row_zero,
  verify_padding_output_unwritten,

  // page tables
  prefix_page_one_late,
  checkpoint_starts_rounded_up,
  empty_sequence_has_output_row,
  decode_reads_last_page,
  prefix_in_whole_pages,
};

/// How a call is computed, and the one thing that is wrong with it.
struct Setting {
  HonestOptions options;
  Fault fault = Fault::none;
  bool is(Fault other) const { return fault == other; }
};

/// honest_run with a fault.
quire_status run_with(quire_op op, const void* args, const Setting& setting);

}  // namespace quire::conformance::honest
