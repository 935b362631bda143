// Stores into pools, for extend and attend (laws C2-C4).
#pragma once

#include "rows.h"
#include "sight.h"

#include <memory>

namespace quire::conformance::honest {

/// Copies the rows of lanes [begin, end) to the slots their tokens store at.
void store(const Sight& sight, const Rows& values, const Rows& pool, std::int64_t begin, std::int64_t end, const Setting& setting);

/// A pool as it was before the call, for the fault that reads it so; where the pool is too large for a copy, the pool itself.
class PoolBefore {
 public:
  PoolBefore(const Rows& pool, const Setting& setting);
  const Rows& rows() const { return rows_; }

 private:
  std::vector<std::byte> bytes_;
  quire_tensor tensor_{};
  Rows rows_;
};

}  // namespace quire::conformance::honest
