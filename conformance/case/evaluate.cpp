// Evaluating a case or a program.
#include "evaluate.h"

#include "program.h"
#include "result_text.h"

#include <fmt/format.h>

namespace quire::conformance {

using nlohmann::json;

namespace {

// The keys of an envelope, which no op's fields are.
constexpr std::string_view envelope_keys[] = {"format", "semantics", "id", "expect", "tolerance"};

void require_version(const json& object, const char* key) {
  if (const json* version = find(object, key); version != nullptr && *version != 1) reject(key, dump(*version), "1");
}

Evaluated evaluate_call(const EvaluateOptions& options, const Envelope& envelope) {
  Memory memory;
  Surroundings surroundings;
  surroundings.folder = options.folder;
  Fields fields(envelope.fields, memory, surroundings, envelope_keys);
  Outcome outcome = outcome_of([&] { return run_op(fields.text("op"), fields, options.on); });
  return judged(options, envelope, outcome, memory.changed(outcome.error.has_value()));
}

}  // namespace

Evaluated evaluate(const json& test_case, const EvaluateOptions& options) {
  if (!test_case.is_object()) {
    return refused(options, {test_case, nullptr, nullptr, nullptr},
                   Error(ErrorCode::invalid_argument, "case", fmt::format("case: {}; allowed: an object", kind_of(test_case))));
  }
  const Envelope envelope{test_case, find(test_case, "id"), find(test_case, "expect"), find(test_case, "tolerance")};
  try {
    require_version(test_case, "format");
    require_version(test_case, "semantics");
    return test_case.contains("steps") ? evaluate_program(options, envelope, envelope_keys) : evaluate_call(options, envelope);
  } catch (const Error& error) {
    return refused(options, envelope, error);
  }
}

}  // namespace quire::conformance
