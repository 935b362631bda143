// Evaluating cases and programs (case format: Results, Programs).
#include "evaluate.h"

#include "judge.h"
#include "run_op.h"
#include "tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <span>

namespace quire::conformance {

using nlohmann::json;

namespace {

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// What a case says beside its op's fields, where it stands.
struct Envelope {
  const json& fields;
  const json *id, *expect, *tolerance;  // null where absent
};

// The keys of an envelope, which no op's fields are.
constexpr std::string_view envelope_keys[] = {"format", "semantics", "id", "expect", "tolerance"};
constexpr std::string_view step_keys[] = {"id", "expect", "tolerance", "as"};

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void require_version(const json& object, const char* key) {
  if (const json* version = find(object, key); version != nullptr && *version != 1) reject(key, dump(*version), "1");
}

class Evaluation {
 public:
  explicit Evaluation(const EvaluateOptions& options) : options_(options) {}

  Evaluated run(const json& test_case) {
    if (!test_case.is_object()) return failed(nullptr, Error(ErrorCode::invalid_argument, "case", fmt::format("case: {}; allowed: an object", kind_of(test_case))));
    const Envelope envelope{test_case, find(test_case, "id"), find(test_case, "expect"), find(test_case, "tolerance")};
    try {
      require_version(test_case, "format");
      require_version(test_case, "semantics");
      return test_case.contains("steps") ? run_program(envelope) : run_call(envelope, envelope_keys, nullptr);
    } catch (const Error& error) {
      return refused(envelope, error);
    }
  }

 private:
  // Something other than the op's own fields can't be read; that too may be what is expected.
  Evaluated refused(const Envelope& envelope, const Error& error) {
    if (envelope.expect == nullptr || !envelope.expect->is_object()) return failed(envelope.id, error);
    Outcome outcome;
    outcome.error = error;
    const std::string mismatch = difference(outcome, *envelope.expect, nullptr);
    return {text_of(outcome, envelope.id, {}, mismatch), mismatch.empty()};
  }

  Evaluated failed(const json* id, const Error& error) {
    Outcome outcome;
    outcome.error = error;
    return {text_of(outcome, id, {}, std::nullopt), false};
  }

  Evaluated run_program(const Envelope& program) {
    const json& steps = program.fields["steps"];
    for (const auto& item : program.fields.items()) {
      if (item.key() == "steps" || std::find(std::begin(envelope_keys), std::end(envelope_keys), item.key()) != std::end(envelope_keys)) continue;
      reject(item.key(), "an unknown key", "format, semantics, id, steps, expect and tolerance");
    }
    if (!steps.is_array()) reject("steps", std::string(kind_of(steps)), "a list of steps");
    if (program.expect != nullptr && (!program.expect->is_array() || program.expect->size() != steps.size())) {
      reject("expect", "no list of as many results as steps", "one result for each step");
    }
    Evaluated all{"[", true};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Evaluated one = run_step(program, steps[i], i);
      all.text += (i == 0 ? "" : ",") + one.text;
      all.ok &= one.ok;
    }
    all.text += "]";
    return all;
  }

  Evaluated run_step(const Envelope& program, const json& fields, std::size_t i) {
    Envelope step{fields, nullptr, nullptr, program.tolerance};
    try {
      if (!fields.is_object()) reject("steps", std::string(kind_of(fields)), "objects");
      step.id = find(fields, "id");
      if (const json* own = find(fields, "tolerance")) step.tolerance = own;
      step.expect = find(fields, "expect");
      if (step.expect == nullptr && program.expect != nullptr) step.expect = &(*program.expect)[i];
      for (const char* later : {"capture", "launch", "stream", "record", "wait", "to"}) {
        if (fields.contains(later)) {
          throw Error(ErrorCode::unsupported, later, fmt::format("{}: captured steps, streams and devices are not run here; allowed: ops with \"as\" and refs", later));
        }
      }
      const json* as = find(fields, "as");
      if (as != nullptr && !as->is_string()) reject("as", std::string(kind_of(*as)), "a name");
      const std::string name = as != nullptr ? as->get<std::string>() : std::string();
      return run_call(step, step_keys, as != nullptr ? &name : nullptr);
    } catch (const Error& error) {
      return refused(step, error);
    }
  }

  // One op. `as` names its tensors for later steps.
  Evaluated run_call(const Envelope& call, std::span<const std::string_view> hidden, const std::string* as) {
    Memory memory;
    Outcome outcome;
    const Surroundings surroundings{options_.folder, &steps_};
    Fields fields(call.fields, memory, surroundings, hidden);
    try {
      outcome.outputs = run_op(fields.text("op"), fields, options_.on);
    } catch (const Error& error) {
      outcome.error = error;
    } catch (const std::bad_alloc&) {
      outcome.error = Error(ErrorCode::unavailable, "", "no memory for this case");
    }
    if (as != nullptr && !outcome.error) {
      NamedTensors& named = steps_[*as];
      named.clear();
      for (const Output& output : outcome.outputs) {
        if (const Tensor* tensor = std::get_if<Tensor>(&output.value)) named.emplace(output.name, *tensor);
      }
      named.insert(fields.tensors().begin(), fields.tensors().end());
    }
    const std::vector<std::string> changed = memory.changed(outcome.error.has_value());
    std::optional<std::string> mismatch;
    if (call.expect != nullptr) mismatch = difference(outcome, *call.expect, call.tolerance);
    // A case that expects an error and gets it is as it should be.
    const bool ok = changed.empty() && (mismatch ? mismatch->empty() : !outcome.error);
    return {text_of(outcome, call.id, changed, mismatch), ok};
  }

  std::string text_of(const Outcome& outcome, const json* id, const std::vector<std::string>& changed,
                      const std::optional<std::string>& mismatch) const {
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
        } else if (options_.divert) {
          text += dump(options_.divert(output.name, std::get<Tensor>(output.value)));
        } else {
          append_tensor(text, std::get<Tensor>(output.value));
        }
      }
    }
    text += ",\"intact\":" + (changed.empty() ? std::string("true") : dump(changed));
    if (mismatch) text += mismatch->empty() ? ",\"verdict\":\"pass\"" : ",\"verdict\":\"fail\",\"difference\":" + dump(*mismatch);
    return text + "}";
  }

  const EvaluateOptions& options_;
  std::map<std::string, NamedTensors, std::less<>> steps_;
};

}  // namespace

Evaluated evaluate(const json& test_case, const EvaluateOptions& options) { return Evaluation(options).run(test_case); }

}  // namespace quire::conformance
