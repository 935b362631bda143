// Programs of captured steps: calls of `extend` and `mask` captured once, launched with other tables, values and pools, on streams that events
// order, on the host or a device. All exact, so that every backend has the same bits.
#include <algorithm>

#include "random_cases_parts.h"

namespace quire_tests {
namespace {

// Every integer in a tensor of an index, in either form.
template <typename Change>
void change_integers(Json& tensor, const Change& change) {
  if (tensor.is_number_integer()) {
    tensor = change(tensor.get<std::int64_t>());
  } else if (tensor.is_object()) {
    change_integers(tensor["data"], change);
  } else if (tensor.is_array()) {
    for (Json& inner : tensor) change_integers(inner, change);
  }
}

// The numbers of a tensor in another order.
void reorder(Random& random, Json& tensor) {
  std::vector<Json*> numbers;
  const auto collect = [&](auto&& self, Json& value) -> void {
    if (value.is_array()) {
      for (Json& inner : value) self(self, inner);
    } else {
      numbers.push_back(&value);
    }
  };
  collect(collect, tensor.is_object() ? tensor["data"] : tensor);
  for (std::size_t left = numbers.size(); left > 1; --left) {
    std::swap(*numbers[left - 1], *numbers[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(left) - 1))]);
  }
}

std::int64_t rows_of(const Json& tensor) {
  return tensor.is_object() ? tensor["shape"][0].get<std::int64_t>() : static_cast<std::int64_t>(tensor.size());
}

// The same index with other slots and its lanes' tokens in another order: distinct targets stay distinct, and its structure is the same.
Json other_index(Random& random, Json index, std::int64_t slots) {
  if (!index.contains("table")) return index;
  const Ints places = shuffled(random, slots);
  const auto moved = [&](std::int64_t slot) { return slot >= 0 && slot < slots ? places[static_cast<std::size_t>(slot)] : slot; };
  change_integers(index["table"], moved);
  if (index.contains("every")) {
    for (Json& blocks : index["every"]) change_integers(blocks["blocks"], moved);
  }
  if (!index.contains("then")) {
    Json& pos = index["pos"].is_object() ? index["pos"]["data"] : index["pos"];
    if (pos.is_array() && !pos.empty() && pos[0].is_array()) {
      for (Json& lane : pos) reorder(random, lane);
    }
  }
  if (index.contains("then")) {
    for (Json& step : index["then"]) {
      if (step.contains("draft")) change_integers(step["draft"]["slots"], moved);
    }
  }
  return index;
}

// `extend` fields without its op.
Json draw_call(Random& random) {
  for (;;) {
    Json call = draw_extend(random);
    if (call.contains("expect") || !call.contains("index") || !call.contains("values")) continue;
    Json fields;
    for (const char* name : {"index", "values", "pool"}) {
      if (call.contains(name)) fields[name] = call[name];
    }
    return fields;
  }
}

}  // namespace

Json draw_steps(Random& random) {
  const bool on_device = random.pick_bool();
  const bool with_mask = random.pick_bool();
  const std::int64_t launches = 1 + random.pick(3);
  const std::int64_t streams = random.pick(3);
  const Json call = draw_call(random);
  // Without a table no pool is used, and a launch that names one is refused.
  const bool has_table = !call["index"].contains("whole") && !call["index"].contains("packed");
  const bool has_pool = call.contains("pool") && (has_table || random.chance(10));
  const std::int64_t slots = has_pool ? rows_of(call["pool"]) : 0;
  Json steps = Json::array();

  Json extend = call;
  extend["op"] = "extend";
  extend["as"] = "e";
  Json captured = Json::array({extend});
  if (with_mask) captured.push_back({{"op", "mask"}, {"as", "m"}, {"index", call["index"]}});
  steps.push_back({{"capture", captured}, {"as", "step"}});
  const std::string prefix = with_mask ? "e." : "";

  std::string last_stream;  // of the last launch: the next one waits for it, since both write the step's results, and may share a pool
  Json last_pool;
  const auto on_stream = [&](Json& step, bool has_stream) {
    const std::string name = streams == 0 || !has_stream ? "" : "s" + std::to_string(random.between(0, streams - 1));
    // A launch without a stream waits on the host.
    if (!last_stream.empty() && last_stream != name) {
      steps.push_back({{"record", "e"}, {"stream", last_stream}});
      Json wait = {{"wait", "e"}};
      if (!name.empty()) wait["stream"] = name;
      steps.push_back(wait);
    }
    if (!name.empty()) step["stream"] = name;
    last_stream = name;
  };
  for (std::int64_t n = 0; n < launches; ++n) {
    const std::string name = "l" + std::to_string(n);
    Json step = {{"launch", "step"}, {"as", name}};
    step[prefix + "index"] = other_index(random, call["index"], slots);
    if (with_mask) step["m.index"] = step[prefix + "index"];
    step[prefix + "values"] = call["values"];
    reorder(random, step[prefix + "values"]);
    if (has_pool) {
      if (last_pool.is_null() || random.chance(30)) {
        last_pool = nullptr;
        step[prefix + "pool"] = call["pool"];
        reorder(random, step[prefix + "pool"]);
      } else {
        step[prefix + "pool"] = last_pool;
      }
    }
    on_stream(step, random.chance(85));
    steps.push_back(step);
    if (has_pool) last_pool = {{"ref", name + "." + prefix + "pool"}};
  }
  // The step as it was captured: nothing of a launch stays in it.
  Json again = {{"launch", "step"}};
  on_stream(again, false);
  steps.push_back(again);
  if (on_device) {
    // The same call where the backend computes, its tensors copied there first and the pool back behind it.
    Json copy = call;
    copy["to"] = 0;
    copy["as"] = "d";
    const std::string stream = streams > 0 ? "d0" : "";
    if (!stream.empty()) copy["device"] = 0;
    Json op = {{"op", "extend"}, {"as", "there"}};
    for (const auto& item : call.items()) op[item.key()] = {{"ref", "d." + item.key()}};
    Json back = {{"to", "host"}, {"as", "back"}, {"seen", {{"ref", "there.seen"}}}};
    if (has_pool) back["pool"] = {{"ref", "there.pool"}};
    for (Json* step : {&copy, &op, &back}) {
      if (!stream.empty()) (*step)["stream"] = stream;
      steps.push_back(*step);
    }
  }
  return {{"steps", steps}};
}

}  // namespace quire_tests
