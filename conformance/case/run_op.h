// Running the op of a case: its fields in, its named results out.
#pragma once

#include <quire/ops.h>

#include "fields.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace quire::conformance {

/// One named result: a tensor, or JSON where the op's table has none (kind, findings, null).
struct Output {
  std::string name;
  std::variant<Tensor, nlohmann::json> value;
};
using Outputs = std::vector<Output>;

/// The ops of the case format, in its order.
const std::vector<std::string>& op_names();

/// Reads the fields of op `name`, refuses unknown ones, and runs it. Raises quire::Error.
Outputs run_op(const std::string& name, Fields& fields, const On& on);

}  // namespace quire::conformance
