// Which laws a case exercises.
#include "laws.h"

#include <algorithm>
#include <functional>

namespace quire::conformance {

using nlohmann::json;

namespace {

using Laws = std::set<std::string>;

bool starts_with(const std::string& text, std::string_view prefix) { return text.rfind(prefix, 0) == 0; }

// Calls visit(value) for every value inside.
void walk(const json& value, const std::function<void(const json&)>& visit) {
  visit(value);
  if (value.is_structured()) {
    for (const json& inner : value) walk(inner, visit);
  }
}

bool has_poison(const json& value) {
  bool found = false;
  walk(value, [&](const json& inner) { found |= inner == "nan" || inner == "inf" || inner == "-inf"; });
  return found;
}

// What an index's form and builders are.
struct IndexFeatures {
  bool tabled = false, whole = false, packed = false, row = false, blocks = false;
  bool window = false, select = false, draft = false, every = false, advance = false;
};

IndexFeatures features_of(const json& index) {
  IndexFeatures f;
  if (!index.is_object()) return f;
  f.whole = index.contains("whole");
  f.packed = index.contains("packed");
  f.tabled = !f.whole && !f.packed;
  f.row = index.contains("row");
  f.blocks = index.contains("every") || (index.contains("rows") && index["rows"].is_object() && index["rows"].contains("every"));
  if (index.contains("then") && index["then"].is_array()) {
    for (const json& step : index["then"]) {
      if (!step.is_object()) continue;
      f.window |= step.contains("window");
      f.select |= step.contains("select");
      f.draft |= step.contains("draft");
      f.every |= step.contains("every");
      f.advance |= step.contains("advance");
    }
  }
  return f;
}

void add_index_laws(const json& index, const IndexFeatures& f, Laws& laws) {
  if (index.contains("pos")) laws.insert("A1");
  if (f.row) laws.insert("A2");
  if (f.blocks) laws.insert("A3");
  if (index.contains("rows")) laws.insert("A4");
  if (f.whole) laws.insert("A5");
  if (f.packed) laws.insert("A6");
  if (f.window) laws.insert("A7");
  if (f.select) laws.insert("A8");
  if (f.draft) laws.insert("A9");
  if (f.every) laws.insert("A10");
  if (f.advance) laws.insert("A11");
}

// Positions past the table's last column.
bool has_position_past_context(const json& index) {
  if (!index.contains("pos") || !index.contains("table") || !index["table"].is_array() || index["table"].empty() || !index["table"][0].is_array()) return false;
  const auto context = static_cast<std::int64_t>(index["table"][0].size());
  bool past = false;
  walk(index["pos"], [&](const json& value) { past |= value.is_number_integer() && value.get<std::int64_t>() >= context; });
  return past;
}

void add_sight_laws(const json& index, const IndexFeatures& f, Laws& laws) {
  if (f.tabled) laws.insert("B1");
  if (!f.tabled) laws.insert("B2");
  if (!f.tabled && f.every) laws.insert("B3");
  if (f.draft) laws.insert("B4");
  if (f.select) laws.insert("B5");
  if (has_position_past_context(index)) laws.insert("B7");
}

void add_pool_laws(const json& call, const IndexFeatures& f, Laws& laws) {
  laws.insert({"C1", "C9"});
  if (f.tabled) laws.insert({"C2", "C3", "C4"});
  if (f.tabled && !f.select) laws.insert("C5");
  if (f.select) laws.insert("C6");
  if (f.draft || !f.tabled) laws.insert("C7");
  if (has_poison(call)) laws.insert("C8");
}

void add_state_laws(const std::string& op, const json& call, Laws& laws) {
  laws.insert({"E1", "E5"});
  const bool defaults_on = op != "gdn_prefill" && op != "gdn_prefill_paged";
  if (call.value("use_qk_l2norm", defaults_on)) laws.insert("E2");
  if (call.contains("A_log")) laws.insert("E3");
  if (call.contains("cu_seqlens")) laws.insert("E4");
  if (call.contains("state_indices")) laws.insert("E6");
  if (call.contains("checkpoint_every_n_tokens")) laws.insert("E7");
  for (const char* field : {"output_state", "state_checkpoints"}) {
    if (call.contains(field) && call[field].is_string()) laws.insert("E8");
  }
}

// One call that the laws allow.
void add_call_laws(const json& call, Laws& laws) {
  const std::string op = call.value("op", "");
  const json index = call.value("index", json());
  const IndexFeatures f = features_of(index);
  if (index.is_object()) add_index_laws(index, f, laws);
  if (op == "positions") laws.insert("A12");
  if (op == "mask") laws.insert("B6");
  if (op == "mask" || op == "extend" || op == "attend") add_sight_laws(index, f, laws);
  if (op == "extend" || op == "attend") add_pool_laws(call, f, laws);
  if (op == "attend") {
    laws.insert({"D1", "D2", "D3"});
    if (call.contains("softcap") || call.contains("sinks")) laws.insert("D4");
  }
  if (op == "gdn_prefill" || op == "gdn_decode" || op == "gdn_verify" || starts_with(op, "gdn_prefill_paged") || starts_with(op, "gdn_decode_paged")) {
    add_state_laws(op, call, laws);
  }
  if (call.contains("page_indptr")) {
    laws.insert("E10");
    laws.insert(starts_with(op, "gdn_prefill") ? "E11" : "E12");
    laws.insert("E14");
  }
  if (op == "page_table") laws.insert("F1");
  if (op == "gdn_verify") laws.insert("F2");
  if (op == "check") laws.insert("F3");
}

// A call that a law refuses: the refusal is what is exercised.
void add_refusal_laws(const json& call, Laws& laws) {
  const std::string op = call.value("op", "");
  if (op == "attend" || op == "extend") laws.insert("D5");
  if (starts_with(op, "gdn_")) laws.insert("E9");
  if (call.contains("page_indptr")) laws.insert("E13");
  if (op == "page_table") laws.insert("F1");
  if (op == "gdn_verify") laws.insert("F2");
}

void for_each_call(const json& test_case, const std::function<void(const json&)>& visit) {
  if (test_case.contains("steps") && test_case["steps"].is_array()) {
    for (const json& step : test_case["steps"]) visit(step);
  } else {
    visit(test_case);
  }
}

}  // namespace

const std::vector<std::string>& all_laws() {
  static const std::vector<std::string> laws = {"A1", "A2", "A3", "A4",  "A5",  "A6",  "A7",  "A8", "A9", "A10", "A11", "A12", "B1", "B2", "B3", "B4", "B5",
                                                "B6", "B7", "C1", "C2",  "C3",  "C4",  "C5",  "C6", "C7", "C8",  "C9",  "D1",  "D2", "D3", "D4", "D5", "E1",
                                                "E2", "E3", "E4", "E5",  "E6",  "E7",  "E8",  "E9", "E10", "E11", "E12", "E13", "E14", "F1", "F2", "F3"};
  return laws;
}

std::set<std::string> laws_of(const json& test_case) {
  Laws laws;
  if (test_case.contains("expect") && !test_case["expect"].is_object()) return laws;
  // The generator names the fault of a bad case in its id; a golden case expects the error.
  const bool is_refused = test_case.contains("expect") ? test_case["expect"].value("status", "") == "error" : test_case.contains("id");
  for_each_call(test_case, [&](const json& call) { is_refused ? add_refusal_laws(call, laws) : add_call_laws(call, laws); });
  return laws;
}

std::set<std::string> ops_of(const json& test_case) {
  std::set<std::string> ops;
  for_each_call(test_case, [&](const json& call) { ops.insert(call.value("op", "")); });
  return ops;
}

std::set<std::string> dtypes_of(const json& test_case) {
  std::set<std::string> dtypes;
  walk(test_case, [&](const json& value) {
    if (value.is_object() && value.contains("dtype") && value["dtype"].is_string()) dtypes.insert(value["dtype"].get<std::string>());
  });
  return dtypes;
}

}  // namespace quire::conformance
