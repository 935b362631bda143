// A sandboxed call on a candidate in the ways that engines use one: called at once; or captured and launched.
#pragma once

#include "sandbox.h"

#include <quire/ops.h>
#include <quire/stream.h>

#include <optional>
#include <string>

namespace quire::conformance {

/// Where a candidate computes what lies on the host: there, or on a device that the sandbox's memory, guard zones too, is copied to and from.
struct Placement {
  /// On `device` where it is given, else on the candidate's first device unless that reads the host's memory. Raises invalid_argument
  /// (`device`) for one that the candidate has not.
  explicit Placement(const Backend& candidate, std::optional<std::int32_t> ordinal = {});
  bool is_staged = false;
  Device device;  ///< the candidate's, staged or not
  /// For ops on host tensors.
  On on(const Backend& candidate) const;
};

/// Why the candidate does not run the call, as it gets it. Empty: it does.
std::string unsupported_reason(const Backend& candidate, const Placement& placement, quire_op op, const void* args);

/// Runs the call at once.
void run_at_once(const Backend& candidate, const Placement& placement, Sandbox& sandbox);

/// Captures the call on other memory, which holds nothing but poison, and launches it on the sandbox's in `stream` (null: synchronous).
/// Answers false, and has not run it, where the candidate captures nothing, or where the pools are far larger than what is in them.
bool run_as_step(const Backend& candidate, const Placement& placement, Sandbox& sandbox, const Stream* stream);

}  // namespace quire::conformance
