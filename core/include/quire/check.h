// check: every obligation on an index that its caller broke (law F3).
#pragma once

#include <quire/index.h>

#include <optional>
#include <string>
#include <vector>

namespace quire {

/// One broken obligation. A field is absent where the kind has none.
struct Finding {
  std::string kind;
  std::optional<std::int64_t> lane, row, column;
  std::string message;
};

/// F3. Reads the index on the host and changes nothing. `slots` is the pool's size where known. A draft token's column is C + its place.
/// Raises `unsupported` (index) for an index on a device, invalid_argument (slots) for a negative size.
std::vector<Finding> check(const Index& index, std::optional<std::int64_t> slots = {});

}  // namespace quire
