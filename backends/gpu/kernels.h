// The kernels, as planning launches them. Each takes the parameters named beside it and is written in kernels/.
#pragma once

#include "kernel.h"

namespace quire::gpu {

Kernel positions();          // TokensParameters; a thread per token
Kernel mask();               // TokensParameters; a thread per element
Kernel advance();            // TokensParameters; a block per lane, shared_of_advance
Kernel store_rows();         // StoreParameters; a block per token
Kernel gather_rows();        // GatherParameters; a block per row of `seen`
Kernel attend();             // AttendParameters; a block per token, query head and attend_values values, shared_of_attend
Kernel gdn_prefill();        // PrefillParameters; a warp per sequence, head and row v of the state
Kernel gdn_decode();         // DecodeParameters; likewise
Kernel draft_tree();         // TreeParameters; a thread per token
Kernel gdn_verify();         // VerifyParameters; a warp per lane, head and row v of the state
Kernel gdn_prefill_slots();  // SlotsParameters; a thread per sequence
Kernel gdn_decode_slots();   // SlotsParameters; likewise

/// Threads of a block, of every kernel.
inline constexpr int block_threads = 128;

/// Values of a head that a block of `attend` sums; a head with more takes more blocks.
inline constexpr int attend_values = 256;
/// Bytes of a block's shared memory. A head's query must fit.
std::int64_t shared_of_attend(std::int64_t query_size);
inline constexpr std::int64_t shared_of_advance = block_threads * 8;

/// Keys that a warp holds of a state's row: so many elements per thread of the narrowest warp.
inline constexpr int row_parts = 8;
inline constexpr int most_keys = row_parts * 32;

}  // namespace quire::gpu
