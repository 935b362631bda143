// Reading the index of a case: its four forms and the builders in `then`.
#pragma once

#include <quire/index.h>

#include "fields.h"

namespace quire::conformance {

/// The index at field `name`, also a program's earlier one by {"ref":"step.index"}. Raises invalid_argument naming the field inside it (laws A).
Index read_index(Fields& fields, std::string_view name = "index");

}  // namespace quire::conformance
