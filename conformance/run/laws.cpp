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

// NaN or infinity in a pool.
bool has_poison(const json& call) {
  bool found = false;
  for (const char* pool : {"pool", "k_pool", "v_pool"}) {
    if (call.contains(pool)) walk(call[pool], [&](const json& inner) { found |= inner == "nan" || inner == "inf" || inner == "-inf"; });
  }
  return found;
}

// A field's integers, row-major, in either form of a tensor; none where they lie elsewhere.
std::vector<std::int64_t> integers_of(const json& call, const char* field) {
  std::vector<std::int64_t> numbers;
  if (!call.contains(field)) return numbers;
  const json& tensor = call[field];
  walk(tensor.is_object() && tensor.contains("data") ? tensor["data"] : tensor, [&](const json& inner) {
    if (inner.is_number_integer()) numbers.push_back(inner.get<std::int64_t>());
  });
  return numbers;
}

// A sequence without tokens or pages, or without an entry.
bool has_empty_sequence(const json& call) {
  for (const char* field : {"cu_seqlens", "page_indptr"}) {
    const std::vector<std::int64_t> bounds = integers_of(call, field);
    if (std::adjacent_find(bounds.begin(), bounds.end()) != bounds.end()) return true;
  }
  return false;
}

// What an index's form and builders are, and what is in force when all builders are done.
struct IndexFeatures {
  bool tabled = false, whole = false, packed = false, row = false, blocks = false;
  bool window = false, select = false, draft = false, every = false, advance = false;
  bool is_selecting = false, is_draft = false, reads_blocks = false;
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
      f.is_selecting |= step.contains("select");
      f.is_draft |= step.contains("draft");
      if (step.contains("advance")) f.is_selecting = f.is_draft = false;  // A11
      if (step.contains("every")) f.reads_blocks = step["every"] != 1;
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

// The length of a tensor's last axis, in either form; 0 where it can't be told.
std::int64_t last_axis_of(const json& tensor) {
  if (tensor.is_object()) return tensor.contains("shape") && !tensor["shape"].empty() ? tensor["shape"].back().get<std::int64_t>() : 0;
  const json* inner = &tensor;
  while (inner->is_array() && !inner->empty() && inner->front().is_array()) inner = &inner->front();
  return inner->is_array() ? static_cast<std::int64_t>(inner->size()) : 0;
}

// Positions past the table's last column.
bool has_position_past_context(const json& index) {
  if (!index.contains("pos") || !index.contains("table")) return false;
  const std::int64_t context = last_axis_of(index["table"]);
  const std::vector<std::int64_t> positions = integers_of(index, "pos");
  return context > 0 && std::any_of(positions.begin(), positions.end(), [&](std::int64_t t) { return t >= context; });
}

void add_sight_laws(const json& index, const IndexFeatures& f, Laws& laws) {
  if (f.tabled && !f.is_draft) laws.insert("B1");
  if (!f.tabled) laws.insert("B2");
  if (!f.tabled && f.reads_blocks) laws.insert("B3");
  if (f.is_draft) laws.insert("B4");
  if (f.is_selecting) laws.insert("B5");
  if (has_position_past_context(index)) laws.insert("B7");
}

void add_pool_laws(const json& call, const IndexFeatures& f, Laws& laws) {
  laws.insert({"C1", "C9"});
  if (f.tabled) laws.insert({"C2", "C3", "C4"});
  if (f.tabled && !f.is_selecting) laws.insert("C5");
  if (f.is_selecting) laws.insert("C6");
  if (f.is_draft || !f.tabled) laws.insert("C7");
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
  for (const char* field : {"initial_state", "output_state", "state_checkpoints", "state_pool"}) {
    if (!call.contains(field)) continue;
    // One pool for two fields, or rows with padding between them.
    if (call[field].is_string() || (call[field].is_object() && call[field].contains("row_stride"))) laws.insert("E8");
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
    if (has_empty_sequence(call)) laws.insert("E14");
  }
  if (op == "page_table") laws.insert("F1");
  if (op == "gdn_verify") laws.insert("F2");
  if (op == "check") laws.insert("F3");
}

// A call that a law refuses, naming `argument`: the refusal is what is exercised.
void add_refusal_laws(const json& call, const std::string& argument, Laws& laws) {
  const std::string op = call.value("op", "");
  static const Laws attention_fields = {"q", "k", "v", "k_pool", "v_pool", "values", "pool"};
  if ((op == "attend" || op == "extend") && attention_fields.contains(argument)) laws.insert("D5");
  const bool of_pages = starts_with(argument, "page_") || argument == "last_page_len" || argument == "num_pages" || (op == "gdn_prefill_slots" && argument == "cu_seqlens");
  if (call.contains("page_indptr") && of_pages) laws.insert("E13");
  else if (starts_with(op, "gdn_")) laws.insert("E9");
  if (op == "page_table") laws.insert("F1");
  if (op == "gdn_verify") laws.insert("F2");
}

// Calls visit(call, expectation) for a case or each step of a program; the expectation is null where there is none.
void for_each_call(const json& test_case, const std::function<void(const json&, const json&)>& visit) {
  static const json none;
  const json& expect = test_case.contains("expect") ? test_case["expect"] : none;
  if (!test_case.contains("steps") || !test_case["steps"].is_array()) return visit(test_case, expect);
  std::size_t n = 0;
  for (const json& step : test_case["steps"]) {
    if (step.is_object() && step.contains("capture") && step["capture"].is_array()) {
      for (const json& call : step["capture"]) visit(call, none);
    }
    const json& of_step = expect.is_array() && n < expect.size() ? expect[n] : none;
    visit(step, step.contains("expect") ? step["expect"] : of_step);
    ++n;
  }
}

// A paged op is made of two of the ABI's; every other is one of its own name or none.
bool needs_one_of(const std::string& op, const std::set<std::string>& ops) {
  if (op == "gdn_prefill_paged") return ops.contains("gdn_prefill") || ops.contains("gdn_prefill_slots");
  if (op == "gdn_decode_paged") return ops.contains("gdn_decode") || ops.contains("gdn_decode_slots");
  return ops.contains(op);
}

}  // namespace

const std::vector<std::string>& all_laws() {
  static const std::vector<std::string> laws = {"A1", "A2", "A3", "A4",  "A5",  "A6",  "A7",  "A8", "A9", "A10", "A11", "A12", "A14", "A15", "B1", "B2", "B3", "B4", "B5",
                                                "B6", "B7", "C1", "C2",  "C3",  "C4",  "C5",  "C6", "C7", "C8",  "C9",  "D1",  "D2", "D3", "D4", "D5", "E1",
                                                "E2", "E3", "E4", "E5",  "E6",  "E7",  "E8",  "E9", "E10", "E11", "E12", "E13", "E14", "F1", "F2", "F3"};
  return laws;
}

std::set<std::string> laws_of(const json& test_case, const std::set<std::string>& without) {
  Laws laws;
  // The generator names the fault of a bad case in its id, "argument: reason"; a golden case expects the error.
  const bool is_bad = test_case.contains("id") && !test_case.contains("expect") && !test_case.contains("steps");
  const std::string id = is_bad ? test_case.value("id", "") : "";
  for_each_call(test_case, [&](const json& call, const json& expect) {
    if (call.is_object() && call.contains("launch")) laws.insert("A14");
    if (call.is_object() && call.contains("to") && call.contains("index")) laws.insert("A15");
    if (!call.is_object() || needs_one_of(call.value("op", ""), without)) return;
    if (is_bad) return add_refusal_laws(call, id.substr(0, id.find(':')), laws);
    if (expect.is_object() && expect.value("status", "") == "error") return add_refusal_laws(call, expect.value("argument", ""), laws);
    add_call_laws(call, laws);
  });
  return laws;
}

std::set<std::string> ops_of(const json& test_case) {
  std::set<std::string> ops;
  for_each_call(test_case, [&](const json& call, const json&) { ops.insert(call.value("op", "")); });
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
