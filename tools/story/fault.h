// Faults: mistakes planted on purpose, to show that a story hangs on its tables.
#pragma once

#include <quire/index.h>

#include <string_view>

namespace quire::story {

/// hole: the first column, which every token sees, loses its slot. swap: a stored column and the
/// next one to be stored change slots. future: a token sees a later one. stale: columns go on
/// naming the slots of older tokens.
enum class Fault { none, hole, swap, future, stale };

/// Raises std::runtime_error for an unknown name.
Fault fault_named(std::string_view name);

/// The index with the mistake in its table or its positions once some token's position is `from` or
/// more, the index itself before. A draft's own faults (swap, future) are planted by who makes the
/// draft.
Index plant(Fault fault, std::int64_t from, const Index& index);

}  // namespace quire::story
