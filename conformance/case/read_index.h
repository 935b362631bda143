// Reading the index of a case: its four forms and the builders in `then`.
#pragma once

#include <quire/index.h>

#include "fields.h"

namespace quire::conformance {

/// The index at field `index`. Raises invalid_argument naming the field inside it (laws A).
Index read_index(Fields& fields);

}  // namespace quire::conformance
