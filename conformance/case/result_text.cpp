// A result as a line of JSON.
#include "result_text.h"

#include "tensor_text.h"

#include <fmt/format.h>

namespace quire::conformance {

using nlohmann::json;

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string result_text(const EvaluateOptions& options, const Outcome& outcome, const json* id, const std::vector<std::string>& changed,
                        const std::optional<std::string>& mismatch) {
  std::string text = "{";
  if (id != nullptr) text += "\"id\":" + dump(*id) + ",";
  if (outcome.error) {
    text += fmt::format("\"status\":\"error\",\"code\":\"{}\",\"argument\":{},\"message\":{}", name(outcome.error->code()), dump(outcome.error->argument()),
                        dump(std::string(outcome.error->what())));
  } else {
    text += "\"status\":\"ok\"";
    for (const Output& output : outcome.outputs) {
      text += ",\"" + output.name + "\":";
      if (const json* value = std::get_if<json>(&output.value)) {
        text += dump(*value);
      } else if (options.divert) {
        text += dump(options.divert(output.name, std::get<Tensor>(output.value)));
      } else {
        append_tensor(text, std::get<Tensor>(output.value));
      }
    }
  }
  text += ",\"intact\":" + (changed.empty() ? std::string("true") : dump(changed));
  if (mismatch) text += mismatch->empty() ? ",\"verdict\":\"pass\"" : ",\"verdict\":\"fail\",\"difference\":" + dump(*mismatch);
  return text + "}";
}

Evaluated judged(const EvaluateOptions& options, const Envelope& envelope, const Outcome& outcome, const std::vector<std::string>& changed) {
  std::optional<std::string> mismatch;
  if (envelope.expect != nullptr) mismatch = difference(outcome, *envelope.expect, envelope.tolerance);
  // A case that expects an error and gets it is as it should be.
  const bool ok = changed.empty() && (mismatch ? mismatch->empty() : !outcome.error);
  return {result_text(options, outcome, envelope.id, changed, mismatch), ok};
}

Evaluated refused(const EvaluateOptions& options, const Envelope& envelope, const Error& error) {
  Outcome outcome;
  outcome.error = error;
  if (envelope.expect == nullptr || !envelope.expect->is_object()) return {result_text(options, outcome, envelope.id, {}, std::nullopt), false};
  const std::string mismatch = difference(outcome, *envelope.expect, nullptr);
  return {result_text(options, outcome, envelope.id, {}, mismatch), mismatch.empty()};
}

}  // namespace quire::conformance
