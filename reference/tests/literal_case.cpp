// The literal implementation's cases: fields, names for one memory, programs, errors.
#include <algorithm>
#include <exception>

#include "literal.h"
#include "literal_parts.h"

namespace quire_literal {

Int json_integer(const Json& text, const std::string& field) {
  if (text.is_number_unsigned()) {
    const auto value = text.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(INT64_MAX)) reject(field, "does not fit int64");
    return static_cast<Int>(value);
  }
  if (!text.is_number_integer()) reject(field, "not an integer");
  return text.get<Int>();
}

void only_keys(const Json& object, const std::string& field, const std::vector<std::string>& keys) {
  if (!object.is_object()) reject(field, "not an object");
  for (const auto& item : object.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
      reject(item.key(), "unknown key");
    }
  }
}

void Result::add(const std::string& name, const Shared& tensor) {
  json[name] = print_tensor(*tensor);
  tensors[name] = tensor;
}

void Result::add(const std::string& name, const Tensor& tensor) {
  add(name, std::make_shared<Tensor>(tensor));
}

namespace {

// A nested list is int64 in integer fields, float32 elsewhere.
std::string list_dtype(const std::string& field) {
  const std::vector<std::string> integer_fields = {
      "cu_seqlens",           "state_indices",  "output_state_indices", "checkpoint_cu_starts",
      "checkpoint_state_indices", "prefix_lens", "page_indices",        "page_indptr",
      "last_page_len",        "state_slots",    "scratch"};
  const bool integer =
      std::find(integer_fields.begin(), integer_fields.end(), field) != integer_fields.end();
  return integer ? "i64" : "f32";
}

const std::vector<Op>& ops() {
  static const std::vector<Op> list = {
      {"index", {"index"}, {}, op_index},
      {"positions", {"index"}, {}, op_positions},
      {"mask", {"index"}, {}, op_mask},
      {"extend", {"index", "values"}, {"pool"}, op_extend},
      {"attend",
       {"index", "q", "k", "v"},
       {"k_pool", "v_pool", "scale", "softcap", "sinks"},
       op_attend},
      {"gdn_prefill",
       {"q", "k", "v", "cu_seqlens"},
       {"g", "beta", "scale", "use_qk_l2norm", "initial_state", "state_indices", "output_state",
        "output_state_indices", "output_final_state", "checkpoint_every_n_tokens",
        "state_checkpoints", "checkpoint_cu_starts", "checkpoint_state_indices", "prefix_lens"},
       op_gdn_prefill},
      {"gdn_decode",
       {"q", "k", "v", "state_pool", "state_indices"},
       {"g", "beta", "A_log", "a", "dt_bias", "b", "scale", "use_qk_l2norm",
        "output_state_indices"},
       op_gdn_decode},
      {"gdn_prefill_slots",
       {"cu_seqlens", "page_indices", "page_indptr", "page_size", "last_page_len"},
       {"num_pages"},
       op_gdn_prefill_slots},
      {"gdn_decode_slots",
       {"page_indices", "page_indptr", "page_size", "last_page_len"},
       {"num_pages"},
       op_gdn_decode_slots},
      {"gdn_prefill_paged",
       {"q", "k", "v", "cu_seqlens", "state_pool", "page_indices", "page_indptr", "page_size",
        "last_page_len"},
       {"g", "beta", "scale", "use_qk_l2norm", "num_pages"},
       op_gdn_prefill_paged},
      {"gdn_decode_paged",
       {"q", "k", "v", "state_pool", "page_indices", "page_indptr", "page_size", "last_page_len"},
       {"g", "beta", "A_log", "a", "dt_bias", "b", "scale", "use_qk_l2norm", "num_pages"},
       op_gdn_decode_paged},
      {"gdn_verify",
       {"index", "q", "k", "v", "state_pool", "state_indices", "state_slots"},
       {"g", "beta", "scale", "use_qk_l2norm"},
       op_gdn_verify},
      {"page_table", {"index", "page_size"}, {"scratch"}, op_page_table},
      {"check", {"index"}, {"slots"}, op_check},
  };
  return list;
}

}  // namespace

const Json& Fields::json(const std::string& name) const {
  if (!has(name)) reject(name, "missing");
  return object_.at(name);
}

Shared Fields::parse(const Json& text, const std::string& field, const std::string& dtype) {
  if (!text.is_object() || !text.contains("ref")) {
    return std::make_shared<Tensor>(parse_tensor(text, field, dtype));
  }
  only_keys(text, field, {"ref"});
  if (!text["ref"].is_string()) reject(field, "ref is not a name");
  const auto name = text["ref"].get<std::string>();
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) reject(field, "ref names no step's tensor");
  const auto step = program_.find(name.substr(0, dot));
  if (step == program_.end()) reject(field, "ref to an unknown step");
  const auto found = step->second.find(name.substr(dot + 1));
  if (found == step->second.end()) reject(field, "ref to an unknown tensor");
  return found->second;
}

// A string naming another field means the same memory.
Shared Fields::tensor(const std::string& name) { return tensor(name, list_dtype(name)); }

Shared Fields::tensor(const std::string& name, const std::string& dtype) {
  const auto done = read_.find(name);
  if (done != read_.end()) return done->second;
  const Json& text = json(name);
  Shared result;
  if (text.is_string()) {
    const auto other = text.get<std::string>();
    open_.push_back(name);
    if (!has(other) || std::find(open_.begin(), open_.end(), other) != open_.end()) {
      reject(name, "names no other tensor");
    }
    const Json& named = json(other);
    const bool a_tensor = named.is_array() || named.is_string() || named.is_object();
    if (!a_tensor || other == "index" || other == "op" || other == "id") {
      reject(name, "names no tensor");
    }
    result = tensor(other, dtype);
    open_.pop_back();
  } else {
    result = parse(text, name, dtype);
  }
  read_[name] = result;
  return result;
}

Shared Fields::optional_tensor(const std::string& name) {
  return has(name) ? tensor(name) : nullptr;
}

double Fields::number(const std::string& name) const {
  if (!json(name).is_number()) reject(name, "not a number");
  return json(name).get<double>();
}

bool Fields::flag(const std::string& name, bool when_absent) const {
  if (!has(name)) return when_absent;
  if (!json(name).is_boolean()) reject(name, "not a boolean");
  return json(name).get<bool>();
}

Int Fields::integer(const std::string& name) const { return json_integer(json(name), name); }

// Every integer tensor of E and F is int32 or int64, and a backend takes both.
std::vector<Int> Fields::int_list(const std::string& name, Int count) {
  const Shared list = tensor(name);
  if (list->dtype != "i32" && list->dtype != "i64") reject(name, "neither int32 nor int64");
  if (list->rank() != 1) reject(name, "not one dimension");
  if (count >= 0 && list->shape[0] != count) reject(name, "wrong length");
  return list->integer;
}

void require_version(const Json& object, const std::string& name) {
  if (object.contains(name) && object[name] != 1) reject(name, "only version 1 is known");
}

const Op& named_op(const Json& object, const std::vector<std::string>& others) {
  if (!object.contains("op") || !object["op"].is_string()) reject("op", "missing");
  for (const Op& op : ops()) {
    if (object["op"] != op.name) continue;
    std::vector<std::string> keys = {"op"};
    keys.insert(keys.end(), others.begin(), others.end());
    keys.insert(keys.end(), op.required.begin(), op.required.end());
    keys.insert(keys.end(), op.optional.begin(), op.optional.end());
    only_keys(object, "op", keys);
    for (const std::string& name : op.required) {
      if (!object.contains(name)) reject(name, "missing");
    }
    return op;
  }
  reject("op", "unknown op");
}

Json result_of(const Json& object, const std::function<Json()>& run) {
  Json result;
  try {
    if (!object.is_object()) reject("op", "a case is an object");
    result = run();
  } catch (const Failure& failure) {
    result = {{"status", "error"},
              {"code", failure.code},
              {"argument", failure.argument},
              {"message", failure.argument + ": " + failure.message}};
  } catch (const std::exception& failure) {
    result = {{"status", "error"}, {"code", "internal"}, {"message", failure.what()}};
  }
  if (object.is_object() && object.contains("id")) result["id"] = object["id"];
  return result;
}

namespace {

Json run_op(const Json& object) {
  require_version(object, "format");
  require_version(object, "semantics");
  const Op& op = named_op(object, {"format", "semantics", "id", "expect", "tolerance"});
  const Program none;
  Fields fields(object, none);
  Result result;
  result.json["status"] = "ok";
  op.run(fields, result);
  return result.json;
}

}  // namespace

Json eval(const Json& test_case) {
  if (!test_case.is_object() || !test_case.contains("steps")) {
    return result_of(test_case, [&] { return run_op(test_case); });
  }
  try {
    return run_program(test_case);
  } catch (const Failure& failure) {
    return {{"status", "error"},
            {"code", failure.code},
            {"argument", failure.argument},
            {"message", failure.argument + ": " + failure.message}};
  }
}

}  // namespace quire_literal
