// A sandboxed call on a candidate in the ways that engines use one: called at once; or captured and launched.
#pragma once

#include "sandbox.h"

#include <quire/stream.h>

#include <string>

namespace quire::conformance {

/// Why the candidate does not run the call, as it gets it: on its first device where it does not read the host's memory. Empty: it does.
std::string unsupported_reason(const Backend& candidate, quire_op op, const void* args);

/// Runs the call at once. Where the candidate does not read the host's memory, the sandbox goes to its first device and back, guard zones too.
void run_at_once(const Backend& candidate, Sandbox& sandbox);

/// Captures the call on other memory, which holds nothing but poison, and launches it on the sandbox's in `stream` (null: synchronous).
/// Answers false, and has not run it, where the candidate captures nothing.
bool run_as_step(const Backend& candidate, Sandbox& sandbox, const Stream* stream);

}  // namespace quire::conformance
