// The literal implementation's programs: one step after the other, whatever the streams. A captured step keeps its ops' fields; a launch
// puts other tensors in their places and runs the ops on them.
#include <algorithm>
#include <set>

#include "literal_parts.h"

namespace quire_literal {
namespace {

// What a launch needs of a tensor that it puts in another's place: equal dtype, shape and distance of rows.
bool alike(const Tensor& captured, const Tensor& given) {
  const auto stride = [](const Tensor& tensor) { return tensor.padded.value_or(tensor.row_elements()); };
  return captured.dtype == given.dtype && captured.shape == given.shape &&
         (captured.rank() == 0 || stride(captured) == stride(given));
}

// A14: two indices share a step when what it lists is equal in both.
bool alike(const Index& captured, const Index& given) {
  if (captured.kind != given.kind || captured.every.size() != given.every.size()) return false;
  if (captured.reads != given.reads || captured.window != given.window) return false;
  for (std::size_t n = 0; n < captured.every.size(); ++n) {
    if (captured.every[n].size != given.every[n].size) return false;
    if (!alike(captured.every[n].blocks, given.every[n].blocks)) return false;
  }
  for (const auto part : {&Index::table, &Index::row, &Index::columns, &Index::slots, &Index::sees}) {
    const std::optional<Tensor>&a = captured.*part, &b = given.*part;
    if (a.has_value() != b.has_value() || (a && !alike(*a, *b))) return false;
  }
  return alike(captured.pos, given.pos);
}

struct CapturedOp {
  const Op* op = nullptr;
  Json object;         // its fields; an index stands in full
  std::string prefix;  // of its names in a launch
  Tensors tensors;     // its fields' and, under other names, its results'
  std::set<std::string> results;
  std::optional<Index> index;

  // An index without a table reads no pool.
  bool uses(const std::string& field) const {
    const bool is_pool = field == "pool" || field == "k_pool" || field == "v_pool";
    return !is_pool || !index || index->tabled();
  }
};

class Machine {
 public:
  Json run(const Json& step) {
    const std::string as = text_of(step, "as");
    const bool on_stream = find_stream(step);
    if (step.contains("capture")) return capture(step, on_stream, as);
    if (step.contains("launch")) return launch(step, as);
    if (step.contains("record")) return record(step, on_stream);
    if (step.contains("wait")) return wait(step);
    if (step.contains("to")) return copy(step, as);
    return call(step, as);
  }

 private:
  static std::vector<std::string> also(std::vector<std::string> keys) {
    for (const char* key : {"id", "expect", "tolerance", "as", "stream", "device"}) keys.emplace_back(key);
    return keys;
  }

  static std::string text_of(const Json& object, const std::string& name) {
    if (!object.contains(name)) return {};
    if (!object[name].is_string()) reject(name, "not a name");
    return object[name].get<std::string>();
  }

  // This implementation has one device, of number 0.
  static void require_device(const Json& ordinal, const std::string& argument) {
    if (!ordinal.is_number_integer() || ordinal != 0) reject(argument, "no such device");
  }

  static bool find_stream(const Json& step) {
    if (step.contains("device") && !step.contains("stream")) reject("device", "a device without a stream");
    text_of(step, "stream");
    if (step.contains("device")) require_device(step["device"], "device");
    return step.contains("stream");
  }

  // An index that refers to an earlier step's, in full.
  Json resolved(const Json& index) const {
    if (!index.is_object() || !index.contains("ref")) return index;
    if (index.size() != 1 || !index["ref"].is_string()) reject("index", "a ref with other keys or no name");
    const auto found = indices_.find(index["ref"].get<std::string>());
    if (found == indices_.end()) reject("index", "a ref to no step's index");
    return found->second;
  }

  Json resolved_fields(Json object) const {
    if (object.contains("index")) object["index"] = resolved(object["index"]);
    return object;
  }

  Index parsed(const Json& index) const {
    const Json object = {{"index", index}};
    Fields fields(object, named_);
    return parse_index(fields);
  }

  // `index`: null where there is none.
  void keep(const std::string& as, const Tensors& tensors, const Json& index) {
    if (as.empty()) return;
    named_[as] = tensors;
    indices_.erase(as + ".index");
    if (!index.is_null()) indices_[as + ".index"] = index;
  }

  Json call(const Json& step, const std::string& as) {
    require_version(step, "format");
    require_version(step, "semantics");
    const Op& op = named_op(step, also({"format", "semantics"}));
    const Json object = resolved_fields(step);
    Fields fields(object, named_);
    Result result;
    result.json["status"] = "ok";
    op.run(fields, result);
    Tensors tensors = fields.read();
    for (const auto& [name, tensor] : result.tensors) tensors[name] = tensor;
    keep(as, tensors, object.value("index", Json()));
    return result.json;
  }

  Json capture(const Json& step, bool on_stream, const std::string& as) {
    only_keys(step, "capture", also({"capture"}));
    if (as.empty()) reject("as", "missing");
    if (on_stream) reject("stream", "a capture runs on none");
    if (!step["capture"].is_array() || step["capture"].empty()) reject("capture", "no list of ops");
    const Json& ops = step["capture"];
    Machine inside = *this;  // what the ops of the step are named is known inside it only
    std::vector<CapturedOp> captured;
    for (std::size_t n = 0; n < ops.size(); ++n) {
      captured.push_back(inside.capture_op(ops[n], n, ops.size() == 1));
    }
    captured_[as] = captured;
    return {{"status", "ok"}};
  }

  CapturedOp capture_op(const Json& op_step, std::size_t number, bool alone) {
    if (!op_step.is_object()) reject("capture", "an op is an object");
    if (!op_step.contains("op") || !op_step["op"].is_string()) reject("op", "missing");
    for (const char* host : {"index", "page_table", "check"}) {
      if (op_step["op"] == host) reject("capture", "an op of the host");
    }
    const std::string as = text_of(op_step, "as");
    const std::string name = op_step.contains("as") ? as : std::to_string(number);
    CapturedOp captured;
    captured.op = &named_op(op_step, {"as"});
    captured.object = resolved_fields(op_step);
    captured.prefix = alone ? "" : name + ".";
    // Once on copies, for the errors and the results' shapes. First whatever the op reads is read.
    Fields fields(captured.object, named_);
    for (const auto* names : {&captured.op->required, &captured.op->optional}) {
      for (const std::string& field : *names) {
        const Json& text = captured.object.contains(field) ? captured.object[field] : Json();
        if (field != "index" && (text.is_array() || text.is_object() || text.is_string())) fields.tensor(field);
      }
    }
    captured.tensors = fields.read();
    if (captured.object.contains("index")) captured.index = parsed(captured.object["index"]);
    std::map<Shared, Shared> copies;
    for (const auto& [field, tensor] : captured.tensors) {
      if (copies.count(tensor) == 0) copies[tensor] = std::make_shared<Tensor>(*tensor);
    }
    Tensors on_copies;
    for (const auto& [field, tensor] : captured.tensors) on_copies[field] = copies[tensor];
    Fields trial(captured.object, named_, on_copies);
    Result result;
    captured.op->run(trial, result);
    for (const auto& [field, tensor] : result.tensors) {
      captured.results.insert(field);
      if (captured.tensors.count(field) == 0) captured.tensors[field] = tensor;
    }
    keep(as, captured.tensors, captured.object.value("index", Json()));
    return captured;
  }

  Json launch(const Json& step, const std::string& as) {
    const auto found = captured_.find(text_of(step, "launch"));
    if (found == captured_.end()) reject("launch", "no captured step of that name");
    const std::vector<CapturedOp>& ops = found->second;
    Fields fields(step, named_);
    std::vector<std::string> keys = also({"launch"});
    std::vector<std::pair<Shared, Shared>> moves;
    std::vector<Json> objects;
    std::vector<std::pair<Index, Index>> indices;  // captured, given
    Json last_index;
    for (const CapturedOp& op : ops) {
      for (const auto& [field, tensor] : op.tensors) {
        const std::string name = op.prefix + field;
        keys.push_back(name);
        if (!fields.has(name)) continue;
        const std::string dtype = tensor->dtype == "bool"                            ? "bool"
                                  : Tensor::is_integer_dtype(tensor->dtype) ? "i64" : "f32";
        moves.emplace_back(tensor, fields.tensor(name, dtype));
      }
      objects.push_back(op.object);
      if (!op.index) continue;
      const std::string name = op.prefix + "index";
      keys.push_back(name);
      if (!fields.has(name)) continue;
      last_index = objects.back()["index"] = resolved(step[name]);
      indices.emplace_back(*op.index, parsed(last_index));
    }
    only_keys(step, "launch", keys);
    for (const auto& [captured, given] : indices) {
      if (!alike(captured, given)) reject("index", "another structure (A14), or rows at another distance");
    }
    for (const auto& [from, to] : moves) {
      if (!alike(*from, *to)) reject("tensors", "another dtype, shape or stride than the captured one");
      const bool used = std::any_of(ops.begin(), ops.end(), [&](const CapturedOp& op) {
        return std::any_of(op.tensors.begin(), op.tensors.end(), [&](const auto& entry) {
          return entry.second == from && op.uses(entry.first);
        });
      });
      if (!used && from->count() > 0) reject("tensors", "a tensor that the step does not use");
    }

    const auto moved = [&](const Shared& tensor) {
      for (const auto& [from, to] : moves) {
        if (from == tensor) return to;
      }
      return tensor;
    };
    Tensors kept = fields.read();
    for (std::size_t n = 0; n < ops.size(); ++n) {
      Tensors tensors;
      for (const auto& [field, tensor] : ops[n].tensors) {
        if (ops[n].object.contains(field)) tensors[field] = moved(tensor);
      }
      Fields inner(objects[n], named_, tensors);
      Result result;
      ops[n].op->run(inner, result);
      for (const auto& [field, tensor] : result.tensors) {
        const Shared home = moved(ops[n].tensors.at(field));
        if (home != tensor) {
          home->real = tensor->real;
          home->integer = tensor->integer;
        }
        kept[ops[n].prefix + field] = home;
      }
    }
    Json json = {{"status", "ok"}};
    for (const CapturedOp& op : ops) {
      for (const std::string& field : op.results) {
        json[op.prefix + field] = print_tensor(*moved(op.tensors.at(field)));
      }
    }
    keep(as, kept, last_index);
    return json;
  }

  Json record(const Json& step, bool on_stream) {
    only_keys(step, "record", also({"record"}));
    const std::string name = text_of(step, "record");
    if (!on_stream) reject("stream", "missing");
    events_.insert(name);
    return {{"status", "ok"}};
  }

  Json wait(const Json& step) {
    only_keys(step, "wait", also({"wait"}));
    if (events_.count(text_of(step, "wait")) == 0) reject("wait", "no event of that name was recorded");
    return {{"status", "ok"}};
  }

  Json copy(const Json& step, const std::string& as) {
    if (step["to"] != "host") require_device(step["to"], "to");
    if (as.empty()) reject("as", "missing");
    static const std::set<std::string> integers = {
        "cu_seqlens",  "state_indices", "output_state_indices", "checkpoint_cu_starts", "checkpoint_state_indices",
        "prefix_lens", "page_indices",  "page_indptr",          "last_page_len",        "state_slots",
        "pos",         "table",         "row",                  "blocks",               "slots"};
    Fields fields(step, named_);
    const std::vector<std::string> others = also({"to"});
    Tensors copies;
    Json index;
    for (const auto& item : step.items()) {
      const std::string& name = item.key();
      if (std::find(others.begin(), others.end(), name) != others.end()) continue;
      if (name == "index") {
        index = resolved(item.value());
        parsed(index);
        continue;
      }
      copies[name] = std::make_shared<Tensor>(*fields.tensor(name, integers.count(name) != 0 ? "i64" : "f32"));
      copies[name]->padded.reset();
    }
    keep(as, copies, index);
    return {{"status", "ok"}};
  }

  Program named_;
  std::map<std::string, Json> indices_;  // by "step.index"
  std::map<std::string, std::vector<CapturedOp>> captured_;
  std::set<std::string> events_;
};

}  // namespace

Json run_program(const Json& object) {
  require_version(object, "format");
  require_version(object, "semantics");
  only_keys(object, "steps", {"format", "semantics", "id", "steps", "expect", "tolerance"});
  if (!object["steps"].is_array()) reject("steps", "not a list");
  Machine machine;
  Json results = Json::array();
  for (const Json& step : object["steps"]) {
    results.push_back(result_of(step, [&] { return machine.run(step); }));
  }
  return results;
}

}  // namespace quire_literal
