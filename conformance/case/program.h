// Programs: several steps in one case - ops, captured steps and their launches, streams, events, copies to devices (case format: Programs).
#pragma once

#include "result_text.h"

#include <span>
#include <string_view>

namespace quire::conformance {

/// The list of the steps' results. `keys` are those of the envelope. Raises quire::Error where the program itself can't be read.
Evaluated evaluate_program(const EvaluateOptions& options, const Envelope& program, std::span<const std::string_view> keys);

}  // namespace quire::conformance
