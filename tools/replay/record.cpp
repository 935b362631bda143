// A step's calls as a program.
//
// The engine's pools are gigabytes and its numbers mean nothing elsewhere, so slots, pages and rows get the program's own numbers, from 0 on, when a
// step first names them; the pools hold just those. A row's table is known when its last step has been seen, and how many rows there are at the very
// end: until then an index's "table" is empty and its "every" has the blocks by row, and `write` puts the final form in place.
#include "record.h"

#include "arrays/array_file.h"
#include "case/tensor_text.h"

#include <quire/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

namespace quire::replay {

namespace {

using Json = nlohmann::json;

// Smaller tensors stand in the case itself.
constexpr std::int64_t most_inline = 64;

Json reference_to(const std::string& name, const char* field) { return {{"ref", name + "." + field}}; }

// What is read before the program writes it is kept; the rest is NaN, so that reading it shows.
void append(std::vector<float>& pool, const float* from, std::int64_t count, bool is_read) {
  if (is_read) {
    pool.insert(pool.end(), from, from + count);
  } else {
    pool.insert(pool.end(), static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
  }
}

std::int64_t number_of(const std::map<std::int64_t, std::int64_t>& numbers, std::int64_t engines) {
  const auto found = numbers.find(engines);
  return found == numbers.end() ? -1 : found->second;
}

Tensor zeros(Shape shape) { return Tensor::zeros(DType::f32, std::move(shape)); }

}  // namespace

std::filesystem::path side_file(const std::filesystem::path& case_file) { return std::filesystem::path(case_file).replace_extension(".npz"); }

StepRecorder::StepRecorder(const Options& options, const Layers& layers, const PageCache& pages, const Tables& tables)
    : options_(options), layers_(layers), pages_(pages), tables_(tables), state_pools_(static_cast<std::size_t>(layers.count())) {}

void StepRecorder::record(std::int64_t step, const Batch& batch, const Activations& activations) {
  if (options_.save_step == step) return record_lanes(step, batch, activations);
  if (!options_.save_request) return;
  Batch own{batch.kind, {}, 0, 0, {}};
  for (const Lane& lane : batch.lanes) {
    if (lane.sequence->request->number == *options_.save_request) own.add(lane);
  }
  if (own.size() > 0) record_lanes(step, own, activations);
}

void StepRecorder::record_lanes(std::int64_t step, const Batch& batch, const Activations& activations) {
  for (const Lane& lane : batch.lanes) {
    take_slots(lane);
    take_states(lane);
  }
  const bool is_draft = batch.kind == StepKind::draft, is_decode = batch.kind == StepKind::decode;
  const Json whole = index(step, batch, is_draft);
  const std::string pages = fmt::format("pages{}", step);
  if (!is_draft) steps_.push_back({{"op", "page_table"}, {"as", pages}, {"index", whole}, {"page_size", pages_.page_size()}});

  Json windowed = whole;
  windowed["then"].insert(windowed["then"].begin(), Json{{"window", options_.window}});
  const Shape cells = {batch.size(), batch.seq};
  const auto shaped = [](Shape lead, std::initializer_list<std::int64_t> rest) {
    lead.insert(lead.end(), rest);
    return zeros(std::move(lead));
  };
  Tensor q = shaped(cells, {Sizes::query_heads, Sizes::head}), k = shaped(cells, {Sizes::kv_heads, Sizes::head}), v = shaped(cells, {Sizes::kv_heads, Sizes::head_value});
  batch.for_each([&](const Lane& lane, std::int64_t b, std::int64_t i) {
    const std::int64_t cell = batch.cell(b, i);
    activations.attention(lane.token(i), q.data<float>() + cell * Sizes::query_heads * Sizes::head, k.data<float>() + cell * Sizes::head,
                          v.data<float>() + cell * Sizes::head_value);
  });
  const auto key = [&](const char* layer, const char* field) { return fmt::format("step{}.{}.{}", step, layer, field); };
  steps_.push_back({{"op", "attend"}, {"as", fmt::format("attention{}", step)}, {"index", windowed}, {"q", tensor(key("attention", "q"), q)},
                    {"k", tensor(key("attention", "k"), k)}, {"v", tensor(key("attention", "v"), v)}, {"k_pool", nullptr}, {"v_pool", nullptr}});

  const Shape lead = is_draft ? cells : is_decode ? Shape{batch.size(), 1} : Shape{batch.tokens};
  for (int layer = 1; layer < layers_.count(); ++layer) {
    q = shaped(lead, {Sizes::gdn_query_heads, Sizes::key});
    k = shaped(lead, {Sizes::gdn_query_heads, Sizes::key});
    v = shaped(lead, {Sizes::gdn_value_heads, Sizes::value});
    Tensor g = shaped(lead, {Sizes::gdn_value_heads}), beta = shaped(lead, {Sizes::gdn_value_heads});
    batch.for_each([&](const Lane& lane, std::int64_t b, std::int64_t i) {
      const std::int64_t at = is_draft ? batch.cell(b, i) : batch.first[static_cast<std::size_t>(b)] + i;
      activations.gdn(lane.token(i), layer - 1, q.data<float>() + at * Sizes::key, k.data<float>() + at * Sizes::key, v.data<float>() + at * Sizes::gdn_output,
                      g.data<float>() + at * Sizes::gdn_value_heads, beta.data<float>() + at * Sizes::gdn_value_heads);
    });
    const std::string name = fmt::format("gdn{}", layer - 1);
    Json call = {{"op", is_draft ? "gdn_verify" : is_decode ? "gdn_decode_paged" : "gdn_prefill_paged"}, {"as", fmt::format("{}_{}", name, step)},
                 {"use_qk_l2norm", true}, {"state_pool", layer}};
    for (const auto& [field, values] : std::initializer_list<std::pair<const char*, const Tensor&>>{{"q", q}, {"k", k}, {"v", v}, {"g", g}, {"beta", beta}}) {
      call[field] = tensor(key(name.c_str(), field), values);
    }
    if (is_draft) {
      const DraftStates states = renumbered_states(batch);
      call["index"] = whole;
      call["state_indices"] = tensor(key("draft", "state_indices"), states.state_indices);
      call["state_slots"] = tensor(key("draft", "state_slots"), states.state_slots);
    } else {
      for (const char* field : {"page_indices", "page_indptr", "last_page_len"}) call[field] = reference_to(pages, field);
      if (!is_decode) call["cu_seqlens"] = reference_to(pages, "cu_seqlens");
      call["page_size"] = pages_.page_size();
    }
    steps_.push_back(std::move(call));
  }
}

Json StepRecorder::index(std::int64_t step, const Batch& batch, bool is_draft) {
  const Index index = index_of(batch, tables_);
  Json rows = Json::array(), states = Json::object();
  for (const Lane& lane : batch.lanes) {
    const std::int64_t engine_row = lane.sequence->row;
    const auto [place, is_new] = rows_.try_emplace(engine_row, static_cast<std::int64_t>(rows_.size()));
    if (is_new) table_.emplace_back();
    rows.push_back(place->second);
    std::int64_t columns = 0;
    for (std::int64_t i = 0; i < lane.count; ++i) columns = std::max(columns, lane.position(i) + 1);
    // Slots and pages that the program never touches keep out of it: they stand below every window, or in an untouched prefix.
    std::vector<std::int64_t>& row = table_[static_cast<std::size_t>(place->second)];
    row.clear();
    for (std::int64_t p = 0; p < columns; ++p) row.push_back(number_of(slots_, tables_.slot(engine_row, p)));
    // How many rows and blocks there will be is known at the end.
    Json blocks = Json::array();
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(lane.sequence->pages.size()); ++j) blocks.push_back(number_of(states_, tables_.state(engine_row, j)));
    states[std::to_string(place->second)] = std::move(blocks);
  }
  Json built = {{"pos", tensor(fmt::format("step{}.pos", step), index.pos())}, {"table", nullptr}, {"row", std::move(rows)}, {"every", std::move(states)}, {"then", Json::array()}};
  if (is_draft) {
    const Draft draft = *drafted(index, batch, pages_).draft_tokens();
    const Tensor slots = draft.slots.clone(), sees = draft.sees;
    for (std::int64_t n = 0; n < slots.elements(); ++n) slots.data<std::int64_t>()[n] = number_of(slots_, slots.data<std::int64_t>()[n]);
    built["then"].push_back(
        {{"draft", {{"slots", tensor(fmt::format("step{}.draft.slots", step), slots)}, {"sees", tensor(fmt::format("step{}.draft.sees", step), sees)}}}});
  }
  return built;
}

DraftStates StepRecorder::renumbered_states(const Batch& batch) {
  const DraftStates states = draft_states(batch, tables_, pages_);
  for (const Tensor& rows : {states.state_indices, states.state_slots}) {
    for (std::int64_t n = 0; n < rows.elements(); ++n) rows.data<std::int64_t>()[n] = number_of(states_, rows.data<std::int64_t>()[n]);
  }
  return states;
}

Json StepRecorder::tensor(const std::string& key, const Tensor& values) {
  if (values.elements() <= most_inline) return conformance::tensor_json(values);
  beside_[key] = values;
  const std::filesystem::path file = side_file(options_.save).filename();
  return {{"file", file.string()}, {"key", key}};
}

void StepRecorder::take_slots(const Lane& lane) {
  const std::int64_t row = lane.sequence->row, begin = lane.position(0);
  for (std::int64_t p = std::max<std::int64_t>(begin - options_.window, 0); p < begin; ++p) take_slot(tables_.slot(row, p), true);
  for (std::int64_t i = 0; i < lane.count; ++i) {
    take_slot(lane.tree.empty() ? tables_.slot(row, lane.position(i)) : pages_.page(lane.scratch[static_cast<std::size_t>(i)]).slots[0], false);
  }
}

void StepRecorder::take_states(const Lane& lane) {
  const std::int64_t row = lane.sequence->row, begin = lane.position(0), page_size = pages_.page_size();
  if (begin > 0) take_state(tables_.state(row, (begin - 1) / page_size), true);
  for (std::int64_t i = 0; i < lane.count; ++i) {
    take_state(lane.tree.empty() ? tables_.state(row, lane.position(i) / page_size) : pages_.page(lane.scratch[static_cast<std::size_t>(i)]).state, false);
  }
}

std::int64_t StepRecorder::take_slot(std::int64_t slot, bool is_read) {
  const auto [place, is_new] = slots_.try_emplace(slot, static_cast<std::int64_t>(slots_.size()));
  if (is_new) {
    append(k_pool_, layers_.k_pool().data<float>() + slot * Sizes::head, Sizes::head, is_read);
    append(v_pool_, layers_.v_pool().data<float>() + slot * Sizes::head_value, Sizes::head_value, is_read);
  }
  return place->second;
}

std::int64_t StepRecorder::take_state(std::int64_t state, bool is_read) {
  const auto [place, is_new] = states_.try_emplace(state, static_cast<std::int64_t>(states_.size()));
  for (int layer = 1; layer < layers_.count() && is_new; ++layer) {
    append(state_pools_[static_cast<std::size_t>(layer)], layers_.states(layer).data<float>() + state * Sizes::state, Sizes::state, is_read);
  }
  return place->second;
}

void StepRecorder::write() const {
  if (steps_.empty()) {
    reject("--save", options_.save_step ? fmt::format("step {}", *options_.save_step) : fmt::format("request {}", options_.save_request.value_or(0)),
           "a step or request of this run");
  }
  Json steps = steps_;
  std::map<std::string, Tensor> beside = beside_;
  // The program's table: each row as far as it was in use.
  std::size_t columns = 0;
  for (const auto& row : table_) columns = std::max(columns, row.size());
  const auto rows = static_cast<std::int64_t>(table_.size()), blocks = (static_cast<std::int64_t>(columns) + pages_.page_size() - 1) / pages_.page_size();
  std::vector<std::int64_t> cells;
  for (std::vector<std::int64_t> row : table_) {
    row.resize(columns, -1);
    cells.insert(cells.end(), row.begin(), row.end());
  }
  const Tensor table = Tensor::of(std::span<const std::int64_t>(cells), {rows, static_cast<std::int64_t>(columns)});
  beside["table"] = table;
  const std::filesystem::path case_path = options_.save, side_path = side_file(case_path);
  const auto finish_index = [&](Json& step) {
    if (!step.contains("index")) return;
    Json& index = step["index"];
    index["table"] = {{"file", side_path.filename().string()}, {"key", "table"}};
    Json all = Json::array();
    for (std::int64_t r = 0; r < rows; ++r) {
      Json row = index["every"].value(std::to_string(r), Json::array());
      while (static_cast<std::int64_t>(row.size()) > blocks) row.erase(row.size() - 1);
      while (static_cast<std::int64_t>(row.size()) < blocks) row.push_back(-1);
      all.push_back(std::move(row));
    }
    index["every"] = Json::array({{{"m", pages_.page_size()}, {"blocks", std::move(all)}}});
    if (index["then"].empty()) index.erase("then");
  };
  // The first call of each layer holds its pools; the others name them.
  std::map<std::string, Json> pools;
  const auto finish_pool = [&](Json& step, const char* field, const std::string& key, const std::vector<float>& content, Shape row) {
    const auto [first, is_first] = pools.try_emplace(key, reference_to(step["as"], field));
    step[field] = first->second;
    if (!is_first) return;
    row.insert(row.begin(), static_cast<std::int64_t>(content.size()) / count_elements(row, "row"));
    beside[key] = Tensor::of(std::span<const float>(content), std::move(row));
    step[field] = {{"file", side_path.filename().string()}, {"key", key}};
  };
  for (Json& step : steps) {
    finish_index(step);
    if (step["op"] == "attend") {
      finish_pool(step, "k_pool", "k_pool", k_pool_, {Sizes::kv_heads, Sizes::head});
      finish_pool(step, "v_pool", "v_pool", v_pool_, {Sizes::kv_heads, Sizes::head_value});
    } else if (step.contains("state_pool")) {
      const int layer = step["state_pool"];
      finish_pool(step, "state_pool", fmt::format("gdn{}.state_pool", layer - 1), state_pools_[static_cast<std::size_t>(layer)], {Sizes::gdn_value_heads, Sizes::value, Sizes::key});
    }
  }
  try {
    arrays::save(side_path, beside);
  } catch (const Error& error) {
    reject("--save", error.what(), "a place that can be written");
  }
  const std::filesystem::path partial = case_path.string() + ".partial";
  std::ofstream file(partial, std::ios::binary);
  file << Json{{"format", 1}, {"semantics", 1}, {"steps", std::move(steps)}}.dump() << '\n';
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(partial, case_path, error);
  if (!file || error) {
    std::filesystem::remove(partial, error);
    reject("--save", "\"" + options_.save + "\", which can't be written", "a place that can be written");
  }
}

}  // namespace quire::replay
