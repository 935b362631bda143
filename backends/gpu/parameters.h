// What kernels take: tensors, the index and copies of rows as plain structs, filled in by planning and read by the device functions of
// tensors.h and index.h. No struct has padding, so that equal parameters are equal bytes (step.cpp).
#pragma once

#include <quire/backend.h>

#include <cstdint>

namespace quire::gpu {

/// A tensor of at most four axes, or the first four of one whose rows are only copied. Strides count elements. An empty tensor may have no
/// memory; nothing of it is asked for.
struct TensorView {
  void* data = nullptr;
  std::int64_t sizes[4] = {};
  std::int64_t strides[4] = {};
  quire_dtype dtype = QUIRE_F32;
  std::int32_t element_bytes = 0;  ///< 0: the tensor is absent
};

/// Laws A. `table` is the table that the index reads: the positions' one, or the one of blocks of `block_size` positions (A10).
struct IndexView {
  std::int64_t kind = QUIRE_INDEX_TABLED;
  std::int64_t block_size = 1;
  std::int64_t window = 0;   ///< 0: none
  std::int64_t context = 0;  ///< columns of the table of positions, the sequence length on a whole index (A12)
  TensorView pos, table, row, columns, slots, sees;
};

/// How a row of one tensor is copied to a row of another (C1): in units of 1, 2, 4 or 8 bytes, over axes that planning has folded together.
struct RowShape {
  static constexpr int most_axes = 6;
  std::int32_t axes = 0;
  std::int32_t unit_bytes = 1;
  std::int64_t units = 0;  ///< of a row
  std::int64_t sizes[most_axes] = {};
  std::int64_t from_bytes[most_axes] = {};  ///< strides
  std::int64_t to_bytes[most_axes] = {};
};

/// A11, A12, B6.
struct TokensParameters {
  IndexView index;
  TensorView out;
};

/// C3: rows of `values` to their slots.
struct StoreParameters {
  IndexView index;
  TensorView values, pool;
  RowShape row;
};

/// C5-C7: `seen` from the pool, and from the call's own values.
struct GatherParameters {
  IndexView index;
  TensorView values, pool, seen;
  RowShape row_of_pool, row_of_values;
};

struct AttendParameters {
  IndexView index;
  TensorView q, k, v, k_pool, v_pool, sinks, out, lse;
  float scale = 1, softcap = 0;
};

/// E1-E3. Every tensor has two axes of tokens before its heads: [T, 1] in prefill, [B, 1] in decode, [B, S] in verify.
struct RuleView {
  TensorView q, k, v, g, beta, A_log, a, dt_bias, b, output;
  float scale = 1;
  std::int32_t use_qk_l2norm = 0;
};

struct PrefillParameters {
  RuleView rule;
  TensorView cu_seqlens, initial_state, state_indices, output_state, output_state_indices;
  TensorView state_checkpoints, checkpoint_cu_starts, checkpoint_state_indices, prefix_lens;
  std::int64_t sequences = 0;
  std::int64_t checkpoint_every = 0;
  std::int64_t output_state_is_fresh = 0;
};

struct DecodeParameters {
  RuleView rule;
  TensorView state_pool, state_indices, output_state_indices;
};

/// F2's tree of each lane: its real tokens in an order in which parents come first, -1 behind the last, and each token's parent, -1 for
/// none. Both [B, S].
struct TreeParameters {
  IndexView index;
  std::int64_t* order = nullptr;
  std::int64_t* parents = nullptr;
};

struct VerifyParameters {
  RuleView rule;
  TensorView state_pool, state_indices, state_slots;
  const std::int64_t* order = nullptr;
  const std::int64_t* parents = nullptr;
  float* states = nullptr;  ///< unrounded, [B, S, H, V, K]
};

/// E10-E12.
struct SlotsParameters {
  TensorView cu_seqlens, page_indices, page_indptr, last_page_len;
  TensorView state_indices, output_state_indices, prefix_lens, checkpoint_cu_starts;
  std::int64_t page_size = 0;
};

}  // namespace quire::gpu
