// Reading an index (case format: Index).
#include "read_index.h"

#include <fmt/format.h>

namespace quire::conformance {

using nlohmann::json;

namespace {

const json& require_object(const json& value, std::string_view name) {
  if (!value.is_object()) reject(name, std::string(kind_of(value)), "an object");
  return value;
}

std::vector<std::int64_t> optional_integers(Fields& fields, std::string_view name) {
  return fields.has(name) ? fields.integers(name) : std::vector<std::int64_t>();
}

Index read_made(Fields& fields) {
  const Tensor pos = fields.tensor("pos", FieldKind::index);
  const Tensor table = fields.tensor("table", FieldKind::index);
  const Tensor row = fields.optional_tensor("row", FieldKind::index);
  std::vector<BlockTable> every;
  if (fields.has("every")) {
    const json& list = fields.value("every");
    if (!list.is_array()) reject("every", std::string(kind_of(list)), "a list of {\"m\", \"blocks\"}");
    for (const json& entry : list) {
      if (!entry.is_object() || !entry.contains("m") || !entry.contains("blocks")) reject("every", "an entry without m or blocks", "{\"m\", \"blocks\"}");
      Fields pair(entry, fields.memory(), fields.surroundings());
      std::optional<BlockTable> blocks;
      try {
        blocks = BlockTable{pair.integer("m"), pair.tensor("blocks", FieldKind::index)};
      } catch (const Error& error) {
        reject("every", fmt::format("an entry with {}", error.what()), "{\"m\", \"blocks\"}");
      }
      pair.finish();
      every.push_back(std::move(*blocks));
    }
  }
  return Index::make(pos, table, row, std::move(every));
}

Index read_rows(Fields& fields) {
  const std::int64_t context = fields.integer("context");
  const std::vector<std::int64_t> lens = fields.integers("lens");
  const std::vector<std::int64_t> every = optional_integers(fields, "every");
  return Index::rows(context, lens, every);
}

Index read_whole(Fields& fields) {
  const std::int64_t batch = fields.integer("batch");
  const std::int64_t seq = fields.integer("seq");
  std::optional<std::vector<std::int64_t>> lens;
  if (fields.has("lens")) lens = fields.integers("lens");
  return Index::whole(batch, seq, std::move(lens));
}

Index read_packed(Fields& fields) {
  const std::int64_t seq = fields.integer("seq");
  const json& list = fields.value("lens");
  if (!list.is_array()) reject("lens", std::string(kind_of(list)), "a list of lists of lengths");
  std::vector<std::vector<std::int64_t>> lens;
  for (const json& lane : list) {
    const json wrapped{{"lens", lane}};
    lens.push_back(Fields(wrapped, fields.memory(), fields.surroundings()).integers("lens"));
  }
  return Index::packed(seq, lens);
}

Index apply(const Index& index, const json& step, Fields& outer) {
  if (!step.is_object() || step.size() != 1) reject("then", "an entry that is not one builder", "window, select, draft, every or advance");
  Fields fields(step, outer.memory(), outer.surroundings());
  const std::string builder = step.begin().key();
  if (builder == "window") return index.window(fields.integer("window"));
  if (builder == "select") return index.select(fields.tensor("select", FieldKind::index));
  if (builder == "every") return index.every(fields.integer("every"));
  if (builder == "advance") {
    if (fields.optional_boolean("advance") != true) reject("advance", "false", "true");
    return index.advance();
  }
  if (builder == "draft") {
    Fields draft(require_object(fields.value("draft"), "draft"), outer.memory(), outer.surroundings());
    const Tensor slots = draft.tensor("slots", FieldKind::index);
    const Tensor sees = draft.tensor("sees", FieldKind::boolean);
    draft.finish();
    return index.draft(slots, sees);
  }
  reject(builder, "an unknown builder", "window, select, draft, every or advance");
}

}  // namespace

namespace {

Index read_reference(const json& object, std::string_view name, const Surroundings& surroundings) {
  const json& target = object["ref"];
  const std::string text = target.is_string() ? target.get<std::string>() : std::string();
  if (object.size() != 1 || text.empty()) reject(name, "a ref with other keys or without a name", "{\"ref\":\"step.index\"}");
  const auto* indices = surroundings.indices;
  if (indices == nullptr) reject(name, "a ref outside a program", "refs in the steps of a program");
  const auto found = indices->find(text);
  if (found == indices->end()) reject(name, fmt::format("a ref to \"{}\"", text), "the index of an earlier step, \"step.index\"");
  return found->second;
}

}  // namespace

Index read_index(Fields& outer, std::string_view name) {
  const json& object = require_object(outer.value(name), name);
  if (object.contains("ref")) {
    outer.keep_index(read_reference(object, name, outer.surroundings()));
    return *outer.index();
  }
  Fields fields(object, outer.memory(), outer.surroundings());
  const auto form = [&](std::string_view kind, Index (*read)(Fields&)) {
    Fields inner(require_object(fields.value(kind), kind), outer.memory(), outer.surroundings());
    Index index = read(inner);
    inner.finish();
    return index;
  };
  std::optional<Index> index;
  if (fields.has("rows")) {
    index = form("rows", read_rows);
  } else if (fields.has("whole")) {
    index = form("whole", read_whole);
  } else if (fields.has("packed")) {
    index = form("packed", read_packed);
  } else if (fields.has("pos") || fields.has("table")) {
    index = read_made(fields);
  } else {
    reject("index", "none of the four forms", "pos and table, rows, whole or packed");
  }
  if (fields.has("then")) {
    const json& steps = fields.value("then");
    if (!steps.is_array()) reject("then", std::string(kind_of(steps)), "a list of builders");
    for (const json& step : steps) index = apply(*index, step, outer);
  }
  fields.finish();
  outer.keep_index(*index);
  return std::move(*index);
}

}  // namespace quire::conformance
