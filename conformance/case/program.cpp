// Evaluating programs.
#include "program.h"

#include "fields.h"
#include "read_index.h"
#include "run_op.h"

#include <quire/step.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

namespace quire::conformance {

using nlohmann::json;

namespace {

constexpr std::string_view step_keys[] = {"id", "expect", "tolerance", "as", "stream", "device"};
constexpr std::string_view captured_keys[] = {"as"};

// Fields of ops whose lists hold int64, where no op says so (a copy to a device).
constexpr std::string_view index_fields[] = {"cu_seqlens",    "state_indices", "output_state_indices", "checkpoint_cu_starts", "checkpoint_state_indices",
                                             "prefix_lens",   "page_indices",  "page_indptr",          "last_page_len",        "state_slots",
                                             "pos",           "table",         "row",                  "blocks",               "slots"};

bool holds(std::span<const std::string_view> names, std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); }

// A captured op: what its fields and results were.
struct CapturedOp {
  std::string prefix;  // of its names in a launch: "" where the step has one op, else "a." or "0."
  NamedTensors tensors;
  std::set<std::string, std::less<>> writable;
  std::optional<Index> index;
  Outputs outputs;
};

struct CapturedStep {
  Step step;
  std::vector<CapturedOp> ops;
};

// A step that has been given to the backend: what its result is made of, and what it stands on until its stream has passed.
struct Given {
  explicit Given(const Envelope& of) : envelope(of), memory(std::make_unique<Memory>()) {}
  Envelope envelope;
  std::unique_ptr<Memory> memory;
  Outcome outcome;
  std::string stream;
  std::vector<Tensor> kept;
  std::optional<Index> index;
  std::optional<Evaluated> evaluated;  // known already
};

class Program {
 public:
  Program(const EvaluateOptions& options, const Envelope& program, const json& steps)
      : options_(options), program_(program), steps_(steps), backend_(options.on.backend != nullptr ? *options.on.backend : default_backend()) {
    is_on_streams_ = std::any_of(steps.begin(), steps.end(), [](const json& step) { return step.is_object() && step.contains("stream"); });
  }

  Evaluated run() {
    std::vector<Given> all;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      all.push_back(run_step(i));
      // Without streams a result is read at once; with them when all have passed, from copies made in each stream's order.
      if (!is_on_streams_) finish(all.back());
    }
    for (const auto& [name, stream] : streams_) {
      try {
        stream->synchronize();
      } catch (const Error& error) {
        for (Given& given : all) {
          if (given.stream == name && !given.outcome.error) given.outcome.error = error;
        }
      }
    }
    Evaluated together{"[", true};
    for (std::size_t i = 0; i < all.size(); ++i) {
      finish(all[i]);
      together.text += (i == 0 ? "" : ",") + all[i].evaluated->text;
      together.ok &= all[i].evaluated->ok;
    }
    together.text += "]";
    return together;
  }

 private:
  void finish(Given& given) const {
    if (given.evaluated) return;
    try {
      given.evaluated = judged(options_, given.envelope, given.outcome, given.memory->changed(given.outcome.error.has_value()));
    } catch (const Error& error) {
      given.evaluated = refused(options_, given.envelope, error);
    }
  }

  Given run_step(std::size_t i) {
    const json& step = steps_[i];
    Given given({step, nullptr, nullptr, program_.tolerance});
    Envelope& envelope = given.envelope;
    try {
      if (!step.is_object()) reject("steps", std::string(kind_of(step)), "objects");
      envelope.id = find(step, "id");
      if (const json* own = find(step, "tolerance")) envelope.tolerance = own;
      envelope.expect = find(step, "expect");
      if (envelope.expect == nullptr && program_.expect != nullptr) envelope.expect = &(*program_.expect)[i];
      const json* as = find(step, "as");
      if (as != nullptr && !as->is_string()) reject("as", std::string(kind_of(*as)), "a name");
      const std::string name = as != nullptr ? as->get<std::string>() : std::string();
      run_kind(given, name);
    } catch (const Error& error) {
      given.evaluated = refused(options_, envelope, error);
    }
    return given;
  }

  void run_kind(Given& given, const std::string& as) {
    const json& step = given.envelope.fields;
    const Surroundings surroundings{options_.folder, &named_, &indices_, !is_on_streams_};
    Fields fields(step, *given.memory, surroundings, step_keys);
    const Stream* stream = stream_of(step, given);
    given.outcome = outcome_of([&] {
      if (fields.has("capture")) return capture(fields, surroundings, stream, as);
      if (fields.has("launch")) return launch(fields, stream, as);
      if (fields.has("record")) return record(fields, stream);
      if (fields.has("wait")) return wait(fields, stream);
      if (fields.has("to")) return copy(fields, stream, as);
      return run_call(fields, stream, as);
    });
    given.index = fields.index();
    given.kept = fields.kept();
    for (const auto& [name, tensor] : fields.tensors()) given.kept.push_back(tensor);
    for (Output& output : given.outcome.outputs) {
      if (Tensor* tensor = std::get_if<Tensor>(&output.value)) {
        given.kept.push_back(*tensor);
        *tensor = as_now(*tensor, stream);
      }
    }
  }

  // The tensor as it is at this place of the stream, on the host.
  Tensor as_now(const Tensor& tensor, const Stream* stream) const {
    return is_on_streams_ || !tensor.device().is_host() ? copy_to(tensor, backend_, Device{}, stream) : tensor;
  }

  // The step's stream, made where it is first named, on the device that this step says; null where it names none.
  const Stream* stream_of(const json& step, Given& given) {
    const json* name = find(step, "stream");
    const json* ordinal = find(step, "device");
    if (name == nullptr) {
      if (ordinal != nullptr) reject("device", "a device without a stream", "the device of a stream");
      return nullptr;
    }
    if (!name->is_string()) reject("stream", std::string(kind_of(*name)), "a name");
    given.stream = name->get<std::string>();
    const auto found = streams_.find(given.stream);
    const Device device = ordinal != nullptr ? device_of(*ordinal, "device") : found != streams_.end() ? found->second->device() : options_.on.stage_on.value_or(first_device());
    if (found == streams_.end()) return streams_.emplace(given.stream, std::make_unique<Stream>(backend_, device)).first->second.get();
    if (!(found->second->device() == device)) reject("device", to_string(device), fmt::format("{}, the stream's", to_string(found->second->device())));
    return found->second.get();
  }

  Device first_device() const {
    const quire_device device = backend_.first_device().device;
    return {device.type, device.id};
  }

  // A device of the backend by its number.
  Device device_of(const json& ordinal, std::string_view argument) const {
    const std::vector<quire_device_info> devices = backend_.devices();
    if (!ordinal.is_number_integer() || ordinal < 0 || ordinal >= devices.size()) {
      reject(argument, dump(ordinal), fmt::format("0 to {}, the devices of backend {}", devices.size() - 1, backend_.name()));
    }
    const quire_device device = devices[ordinal.get<std::size_t>()].device;
    return {device.type, device.id};
  }

  void keep(const std::string& as, const Fields& fields, const Outputs& outputs) {
    if (as.empty()) return;
    NamedTensors& named = named_[as];
    named.clear();
    for (const Output& output : outputs) {
      if (const Tensor* tensor = std::get_if<Tensor>(&output.value)) named.emplace(output.name, *tensor);
    }
    named.insert(fields.tensors().begin(), fields.tensors().end());
    indices_.erase(as + ".index");
    if (fields.index()) indices_.emplace(as + ".index", *fields.index());
  }

  // Where the program's calls run; those on host tensors that a device shall compute on the stream's.
  On on(const Stream* stream) const {
    On on = options_.on;
    on.backend = &backend_;
    on.stream = stream;
    if (on.stage_on && stream != nullptr) on.stage_on = stream->device();
    return on;
  }

  Outputs run_call(Fields& fields, const Stream* stream, const std::string& as) {
    Outputs outputs = run_op(fields.text("op"), fields, on(stream));
    keep(as, fields, outputs);
    return outputs;
  }

  Outputs capture(Fields& fields, const Surroundings& surroundings, const Stream* stream, const std::string& as) {
    const json& ops = fields.value("capture");
    fields.finish();
    if (as.empty()) reject("as", "nothing", "a name, for launches");
    if (stream != nullptr) reject("stream", "a stream", "none: a capture runs nothing");
    if (!ops.is_array() || ops.empty()) reject("capture", "no list of ops", "a list of one op or more");
    Capture capture(backend_, options_.on.stage_on.value_or(first_device()), options_.on.stage_on.has_value());
    CapturedStep captured{{}, {}};
    std::map<std::string, NamedTensors, std::less<>> before = named_;  // an op's refs may lead to the ones before it in the step
    std::map<std::string, Index, std::less<>> indices_before = indices_;
    Surroundings inner = surroundings;
    for (std::size_t n = 0; n < ops.size(); ++n) {
      if (!ops[n].is_object()) reject("capture", std::string(kind_of(ops[n])), "ops, each an object");
      Memory memory;
      Fields op(ops[n], memory, inner, captured_keys);
      const std::string name = op.text("op");
      for (const char* on_host : {"index", "page_table", "check"}) {
        if (name == on_host) reject("capture", name, "ops that a backend runs");
      }
      const json* own = find(ops[n], "as");
      if (own != nullptr && !own->is_string()) reject("as", std::string(kind_of(*own)), "a name");
      const std::string prefix = own != nullptr ? own->get<std::string>() : fmt::format("{}", n);
      Outputs outputs = run_op(name, op, capture.on());
      if (own != nullptr) keep(prefix, op, outputs);
      CapturedOp& kept = captured.ops.emplace_back();
      kept.prefix = ops.size() == 1 ? "" : prefix + ".";
      kept.tensors = op.tensors();
      for (const auto& [field, tensor] : op.tensors()) {
        if (op.is_writable(field)) kept.writable.emplace(field);
      }
      kept.index = op.index();
      kept.outputs = std::move(outputs);
    }
    // What the ops of the step are named is known to launches alone.
    named_ = std::move(before);
    indices_ = std::move(indices_before);
    captured.step = capture.finish();
    captured_.insert_or_assign(as, std::move(captured));
    return {};
  }

  Outputs launch(Fields& fields, const Stream* stream, const std::string& as) {
    const std::string name = fields.text("launch");
    const auto found = captured_.find(name);
    if (found == captured_.end()) reject("launch", fmt::format("\"{}\"", name), "the name of a captured step");
    const CapturedStep& captured = found->second;
    Bindings bindings;
    for (const CapturedOp& op : captured.ops) {
      for (const auto& [field, tensor] : op.tensors) bind(fields, op.prefix + field, tensor, op.writable.contains(field), bindings);
      for (const Output& output : op.outputs) {
        const Tensor* tensor = std::get_if<Tensor>(&output.value);
        if (tensor != nullptr && !op.tensors.contains(output.name)) bind(fields, op.prefix + output.name, *tensor, true, bindings);
      }
      if (op.index && fields.has(op.prefix + "index")) bindings.indices.emplace_back(*op.index, read_index(fields, op.prefix + "index"));
    }
    fields.finish();
    captured.step.launch(stream, bindings);
    Outputs outputs;
    for (const CapturedOp& op : captured.ops) {
      for (const Output& output : op.outputs) outputs.push_back({op.prefix + output.name, bound(output.value, bindings)});
    }
    indices_of_launches_.insert(indices_of_launches_.end(), bindings.indices.begin(), bindings.indices.end());
    keep(as, fields, outputs);
    return outputs;
  }

  static void bind(Fields& fields, const std::string& name, const Tensor& captured, bool is_writable, Bindings& bindings) {
    if (!fields.has(name)) return;
    const FieldKind kind = captured.dtype() == DType::boolean ? FieldKind::boolean : is_integer(captured.dtype()) ? FieldKind::index : FieldKind::real;
    bindings.tensors.emplace_back(captured, is_writable ? fields.writable(name) : fields.tensor(name, kind));
  }

  // The result of a captured op where a launch put it.
  static std::variant<Tensor, json> bound(const std::variant<Tensor, json>& value, const Bindings& bindings) {
    const Tensor* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr) return value;
    for (const auto& [from, to] : bindings.tensors) {
      if (from.raw() == tensor->raw()) return to;
    }
    return value;
  }

  Outputs record(Fields& fields, const Stream* stream) {
    const std::string name = fields.text("record");
    fields.finish();
    if (stream == nullptr) reject("stream", "nothing", "the stream that the event is recorded in");
    auto& event = events_[name];
    if (event == nullptr) event = std::make_unique<Event>(backend_, stream->device());
    event->record(*stream);
    return {};
  }

  Outputs wait(Fields& fields, const Stream* stream) {
    const std::string name = fields.text("wait");
    fields.finish();
    const auto found = events_.find(name);
    if (found == events_.end()) reject("wait", fmt::format("\"{}\"", name), "an event that was recorded");
    // Without a stream the host waits.
    if (stream != nullptr) {
      found->second->wait(*stream);
    } else {
      found->second->synchronize();
    }
    return {};
  }

  // {"to": 1, name: tensor, ...}: copies on a device, or with "host" on the host.
  Outputs copy(Fields& fields, const Stream* stream, const std::string& as) {
    const json& target = fields.value("to");
    const Device device = target == "host" ? Device{} : device_of(target, "to");
    if (as.empty()) reject("as", "nothing", "a name, for refs");
    NamedTensors copies;
    std::optional<Index> index;
    for (const auto& item : fields.object().items()) {
      const std::string& name = item.key();
      if (!fields.has(name) || name == "to") continue;
      if (name == "index") {
        index = read_index(fields).place({device});
      } else {
        const Tensor tensor = fields.tensor(name, holds(index_fields, name) ? FieldKind::index : FieldKind::real);
        copies.emplace(name, copy_to(tensor, backend_, device, stream));
      }
    }
    fields.finish();
    named_[as] = copies;
    indices_.erase(as + ".index");
    if (index) indices_.emplace(as + ".index", *index);
    return {};
  }

  const EvaluateOptions& options_;
  const Envelope& program_;
  const json& steps_;
  const Backend& backend_;
  bool is_on_streams_ = false;
  std::map<std::string, NamedTensors, std::less<>> named_;
  std::map<std::string, Index, std::less<>> indices_;
  std::map<std::string, CapturedStep, std::less<>> captured_;
  std::vector<std::pair<Index, Index>> indices_of_launches_;  // alive until the streams have passed
  std::map<std::string, std::unique_ptr<Event>> events_;
  std::map<std::string, std::unique_ptr<Stream>> streams_;  // last: they pass before anything else goes
};

}  // namespace

Evaluated evaluate_program(const EvaluateOptions& options, const Envelope& program, std::span<const std::string_view> keys) {
  const json& steps = program.fields["steps"];
  for (const auto& item : program.fields.items()) {
    if (item.key() != "steps" && !holds(keys, item.key())) reject(item.key(), "an unknown key", "format, semantics, id, steps, expect and tolerance");
  }
  if (!steps.is_array()) reject("steps", std::string(kind_of(steps)), "a list of steps");
  if (program.expect != nullptr && (!program.expect->is_array() || program.expect->size() != steps.size())) {
    reject("expect", "no list of as many results as steps", "one result for each step");
  }
  return Program(options, program, steps).run();
}

}  // namespace quire::conformance
