// A result as a line of JSON (case format: Results).
#pragma once

#include "evaluate.h"
#include "judge.h"

#include <optional>
#include <string>
#include <vector>

namespace quire::conformance {

/// `id` is null where the case has none. `mismatch`: what `expect` found, where there is one.
std::string result_text(const EvaluateOptions& options, const Outcome& outcome, const nlohmann::json* id, const std::vector<std::string>& changed,
                        const std::optional<std::string>& mismatch);

/// JSON on one line, whatever bytes its strings hold.
std::string dump(const nlohmann::json& value);

/// The value of a key, or null.
const nlohmann::json* find(const nlohmann::json& object, const char* key);

/// What a case or step says beside its op's fields, where it stands; null where absent.
struct Envelope {
  const nlohmann::json& fields;
  const nlohmann::json *id, *expect, *tolerance;
};

/// Runs a call; what it raises becomes the outcome.
template <typename Body>
Outcome outcome_of(const Body& body) {
  Outcome outcome;
  try {
    outcome.outputs = body();
  } catch (const Error& error) {
    outcome.error = error;
  } catch (const std::bad_alloc&) {
    outcome.error = Error(ErrorCode::unavailable, "", "no memory for this case");
  }
  return outcome;
}

/// A result judged by its envelope.
Evaluated judged(const EvaluateOptions& options, const Envelope& envelope, const Outcome& outcome, const std::vector<std::string>& changed);
/// Something other than an op's own fields can't be read; that too may be what is expected.
Evaluated refused(const EvaluateOptions& options, const Envelope& envelope, const Error& error);

}  // namespace quire::conformance
