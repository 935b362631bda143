// PageTable: the pages of a recurrent-state pool, named by an index's block table (law F1).
#pragma once

#include <quire/index.h>
#include <quire/ops.h>

namespace quire {

/// E10's tables for the lanes' sequences in lane order. i32 tensors on the host.
struct PageTable {
  Tensor cu_seqlens;     ///< [B + 1], tokens counted without padding
  Tensor page_indices;
  Tensor page_indptr;    ///< [B + 1]
  Tensor last_page_len;  ///< [B]
  std::int64_t page_size = 0;

  /// Reads the index on the host. `scratch` holds one page id per lane of padding, in lane order, or is absent. Raises invalid_argument:
  /// `index` (whole, packed, selecting, draft; a row in two lanes with tokens; a row out of the table; positions of a lane not consecutive
  /// or past the block table), `page_size` (no blocks of that size), `scratch`.
  static PageTable from(const Index& index, std::int64_t page_size, std::optional<std::vector<std::int64_t>> scratch = {});

  PagedSequences sequences() const { return {page_indices, page_indptr, last_page_len, page_size}; }
};

}  // namespace quire
