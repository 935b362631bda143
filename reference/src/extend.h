// Storing a call's values in a pool (laws C3, C4, B7).
#pragma once

#include <quire/index_view.h>

#include "rows.h"

namespace quire::reference {

/// Copies each real token's row of `values` to the slot it stores at, in the order of the tokens; stores that address nothing are dropped.
void store(const IndexView& view, const RowView& values, const RowView& pool);

/// A slot of a pool, or -1 where it addresses nothing in this pool (A2).
inline std::int64_t slot_in(const RowView& pool, std::int64_t slot) { return slot >= 0 && slot < pool.size(0) ? slot : -1; }

}  // namespace quire::reference
