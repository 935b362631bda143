// Reading a case's fields (case format: tensors, defaults, aliases, references, side files).
#include "fields.h"

#include <quire/staging.h>

#include "reserved.h"

#include "arrays/array_file.h"
#include "exact_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace quire::conformance {

using nlohmann::json;

namespace {

// Deeper lists than any op takes are a mistake, and bounding them bounds the recursion.
constexpr std::size_t most_axes = 8;
// Bytes of a stride gap: NaN in every floating dtype, a large number in every other.
constexpr int poison = 0xFF;

std::int64_t as_integer(const json& value, std::string_view name) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    reject(name, value.dump(), "integers of 64 bits");
  }
  if (value.is_number_float() && value.get<double>() == 0 && std::signbit(value.get<double>())) return 0;  // written -0
  if (!value.is_number_integer()) reject(name, std::string(kind_of(value)), "an integer");
  return value.get<std::int64_t>();
}

double as_number(const json& value, std::string_view name) {
  if (value.is_binary()) return number_of(value);
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
  }
  if (!value.is_number()) reject(name, value.is_string() ? value.dump(-1, ' ', true, json::error_handler_t::replace) : std::string(kind_of(value)), "a number, \"nan\", \"inf\" or \"-inf\"");
  return value.get<double>();
}

bool as_boolean(const json& value, std::string_view name) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer() && (value == 0 || value == 1)) return value == 1;
  reject(name, std::string(kind_of(value)), "true or false");
}

struct IntegerRange {
  std::int64_t least, greatest;
};

IntegerRange range_of(DType dtype) {
  const std::int64_t bits = size_of(dtype) * 8;
  if (dtype == DType::u8) return {0, 255};
  if (bits == 64) return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
}

// One element, rounded to nearest even once (E5's saturation for fp8).
void put(DType dtype, std::byte* element, const json& value, std::string_view name) {
  if (dtype == DType::boolean) {
    *element = as_boolean(value, name) ? std::byte{1} : std::byte{0};
  } else if (is_integer(dtype)) {
    const std::int64_t number = as_integer(value, name);
    const IntegerRange range = range_of(dtype);
    if (number < range.least || number > range.greatest) {
      reject(name, fmt::format("{}", number), fmt::format("{} to {} ({})", range.least, range.greatest, quire::name(dtype)));
    }
    std::memcpy(element, &number, static_cast<std::size_t>(size_of(dtype)));  // little-endian: the low bytes
  } else {
    const double number = as_number(value, name);
    write_number(dtype, element, dtype == DType::f64 ? number : nearly(value, number));
  }
}

// A nested list's shape, from its first elements down.
Shape shape_of(const json& list, std::string_view name) {
  Shape shape;
  const json* level = &list;
  while (level->is_array()) {
    if (shape.size() == most_axes) reject(name, "a deeper list", fmt::format("at most {} axes", most_axes));
    shape.push_back(static_cast<std::int64_t>(level->size()));
    if (level->empty()) break;
    level = &level->front();
  }
  return shape;
}

void put_list(const json& list, std::size_t axis, const Tensor& tensor, std::byte*& element, std::string_view name) {
  if (axis == tensor.shape().size()) {
    put(tensor.dtype(), element, list, name);
    element += size_of(tensor.dtype());
    return;
  }
  if (!list.is_array()) reject(name, std::string(kind_of(list)) + " where others are lists", "lists of one depth");
  if (static_cast<std::int64_t>(list.size()) != tensor.shape()[axis]) {
    reject(name, fmt::format("lists of {} and {} elements side by side", tensor.shape()[axis], list.size()), "lists of one length");
  }
  for (const json& entry : list) put_list(entry, axis + 1, tensor, element, name);
}

void require_keys(const json& object, std::initializer_list<std::string_view> known) {
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) reject(item.key(), "an unknown key", fmt::format("{}", fmt::join(known, ", ")));
  }
}

DType read_dtype(const json& object, std::string_view name) {
  const auto found = object.find("dtype");
  if (found == object.end() || !found->is_string()) reject(name, "no dtype", "\"dtype\", \"shape\" and \"data\"");
  const auto dtype = dtype_named(found->get_ref<const std::string&>());
  if (!dtype) {
    reject(name, "dtype " + found->dump(-1, ' ', true, json::error_handler_t::replace), "bool i8 u8 i16 i32 i64 f16 bf16 f32 f64 f8_e4m3fn f8_e5m2");
  }
  return *dtype;
}

struct Placed {
  Tensor tensor, storage;
};

// New memory for `dense`'s elements: dense, or at a row stride with poison in the gaps.
Placed place(const json& object, std::string_view name, DType dtype, Shape shape) {
  const auto found = object.find("row_stride");
  if (found == object.end()) {
    const Tensor tensor = Tensor::empty(dtype, std::move(shape), name);
    return {tensor, tensor};
  }
  const Tensor tensor = Tensor::empty_padded(dtype, std::move(shape), as_integer(*found, name), name);
  const Tensor storage = Tensor::share(nullptr, tensor.raw(), DType::u8, {tensor.size(0) * tensor.stride(0) * size_of(dtype)});
  if (storage.elements() > 0) std::memset(storage.raw(), poison, static_cast<std::size_t>(storage.elements()));
  return {tensor, storage};
}

std::byte* row_start(const Tensor& tensor, std::int64_t row) { return tensor.raw() + row * tensor.stride(0) * size_of(tensor.dtype()); }

Shape read_shape(const json& object, std::string_view name) {
  const auto field = object.find("shape");
  if (field == object.end() || !field->is_array()) reject(name, "no shape", "\"dtype\", \"shape\" and \"data\"");
  if (field->size() > most_axes) reject(name, fmt::format("{} axes", field->size()), fmt::format("at most {}", most_axes));
  Shape shape;
  for (const json& axis : *field) shape.push_back(as_integer(axis, name));
  return shape;
}

// {"rows": {"7": [...]}}: zeros but for these rows, in memory that is only reserved.
Placed read_rows(const json& object, std::string_view name) {
  require_keys(object, {"dtype", "shape", "rows"});
  const DType dtype = read_dtype(object, name);
  const Tensor tensor = reserve_tensor(dtype, read_shape(object, name), name);
  const json& rows = object["rows"];
  if (!rows.is_object() || tensor.rank() < 1) reject(name, "rows", "an object of flat rows by number, of a tensor with an axis 0");
  const std::int64_t row_elements = tensor.size(0) == 0 ? 0 : tensor.elements() / tensor.size(0);
  for (const auto& item : rows.items()) {
    std::int64_t row = -1;
    const char* end = item.key().data() + item.key().size();
    const auto [stop, error] = std::from_chars(item.key().data(), end, row);
    if (error != std::errc() || stop != end || row < 0 || row >= tensor.size(0)) {
      reject(name, "row \"" + item.key() + "\"", fmt::format("0 to {}", tensor.size(0) - 1));
    }
    if (!item.value().is_array() || static_cast<std::int64_t>(item.value().size()) != row_elements) {
      reject(name, fmt::format("{} elements in row {}", item.value().size(), row), fmt::format("{}", row_elements));
    }
    std::byte* element = tensor.raw() + row * row_elements * size_of(dtype);
    for (const json& value : item.value()) {
      put(dtype, element, value, name);
      element += size_of(dtype);
    }
  }
  return {tensor, tensor};
}

Placed read_object(const json& object, std::string_view name) {
  if (object.contains("rows")) return read_rows(object, name);
  require_keys(object, {"dtype", "shape", "data", "row_stride"});
  const DType dtype = read_dtype(object, name);
  Shape shape = read_shape(object, name);
  const auto data = object.find("data");
  if (data == object.end() || !data->is_array()) reject(name, "no data", "\"dtype\", \"shape\" and \"data\", flat in row-major order");
  const std::int64_t count = count_elements(shape, name);
  if (count != static_cast<std::int64_t>(data->size())) {
    reject(name, fmt::format("{} elements of data", data->size()), fmt::format("{} for shape {}", count, to_string(shape)));
  }
  Placed placed = place(object, name, dtype, std::move(shape));
  const std::int64_t rows = placed.tensor.rank() == 0 ? 1 : placed.tensor.size(0);
  const std::int64_t row = rows == 0 ? 0 : count / rows;
  std::size_t next = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* element = placed.tensor.rank() == 0 ? placed.tensor.raw() : row_start(placed.tensor, r);
    for (std::int64_t i = 0; i < row; ++i, element += size_of(dtype)) put(dtype, element, (*data)[next++], name);
  }
  return placed;
}

Placed read_file(const json& object, std::string_view name, const std::filesystem::path& folder) {
  require_keys(object, {"file", "key", "dtype", "row_stride"});
  const auto text = [&](const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return std::string();
    if (!found->is_string()) reject(name, std::string(kind_of(*found)) + " as " + key, "a string");
    return found->get<std::string>();
  };
  std::optional<DType> as;
  if (object.contains("dtype")) as = read_dtype(object, name);
  const std::string file = text("file");
  const std::string key = text("key");
  if (file.find('\0') != std::string::npos) reject(name, "a file name with a NUL byte", "names of files");
  Tensor loaded;
  try {
    loaded = arrays::load(folder / file, key, as);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(name), fmt::format("{}: {}", name, error.what()));
  }
  if (!object.contains("row_stride")) return {loaded, loaded};
  Placed placed = place(object, name, loaded.dtype(), loaded.shape());
  const std::int64_t row_bytes = loaded.size(0) == 0 ? 0 : loaded.elements() / loaded.size(0) * size_of(loaded.dtype());
  for (std::int64_t r = 0; r < loaded.size(0); ++r) {
    if (row_bytes > 0) std::memcpy(row_start(placed.tensor, r), loaded.raw() + r * row_bytes, static_cast<std::size_t>(row_bytes));
  }
  return placed;
}

Tensor read_reference(const json& object, std::string_view name, const Surroundings& surroundings) {
  require_keys(object, {"ref"});
  const json& target = object["ref"];
  const std::string text = target.is_string() ? target.get<std::string>() : std::string();
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) reject(name, "a ref " + target.dump(-1, ' ', true, json::error_handler_t::replace), "\"step.field\"");
  const std::string step = text.substr(0, dot);
  const std::string field = text.substr(dot + 1);
  if (surroundings.steps == nullptr) reject(name, "a ref outside a program", "refs in the steps of a program");
  const auto found = surroundings.steps->find(step);
  if (found == surroundings.steps->end()) reject(name, fmt::format("a ref to step \"{}\"", step), "an earlier step that succeeded and has that name in \"as\"");
  const auto tensor = found->second.find(field);
  if (tensor == found->second.end()) reject(name, fmt::format("a ref to \"{}\"", text), fmt::format("a tensor of step \"{}\"", step));
  return tensor->second;
}

}  // namespace

std::string_view kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null: return "null";
    case json::value_t::object: return "an object";
    case json::value_t::array: return "a list";
    case json::value_t::string: return "a string";
    case json::value_t::boolean: return "a boolean";
    case json::value_t::number_float: return "a number that is no integer";
    default: return "an integer";
  }
}

void Memory::hold(std::string name, const Tensor& tensor, const Tensor& storage, bool writable) {
  Held held{std::move(name), tensor, storage, {}, writable};
  auto bytes = static_cast<std::size_t>(storage.elements() * size_of(storage.dtype()));
  if (!storage.device().is_host()) bytes = 0;  // nothing is read there
  if (is_reserved_size(bytes)) bytes = 0;  // it is not copied; guard pages and the judge's own copies watch over it
  for (const Held& other : held_) held.writable |= other.storage.raw() == storage.raw() && other.writable && bytes > 0;
  for (Held& other : held_) other.writable |= other.storage.raw() == storage.raw() && held.writable && bytes > 0;
  if (bytes > 0) held.before.assign(storage.raw(), storage.raw() + bytes);
  held_.push_back(std::move(held));
}

std::vector<std::string> Memory::changed(bool after_error) const {
  std::vector<std::string> names;
  for (const Held& held : held_) {
    const std::byte* now = held.storage.raw();
    bool same = true;
    if (!held.writable || after_error) {
      same = held.before.empty() || std::memcmp(now, held.before.data(), held.before.size()) == 0;
    } else if (!held.before.empty() && held.tensor.rank() > 0 && !held.tensor.is_dense()) {
      // The gaps behind each row, the last one's too where it is the tensor's own.
      const std::int64_t size = size_of(held.tensor.dtype());
      const std::int64_t stride = held.tensor.stride(0) * size;
      const std::int64_t row = held.tensor.size(0) == 0 ? 0 : held.tensor.elements() / held.tensor.size(0) * size;
      for (std::int64_t r = 0; r < held.tensor.size(0); ++r) {
        const std::int64_t gap = r * stride + row;
        const std::int64_t end = std::min(gap + stride - row, static_cast<std::int64_t>(held.before.size()));
        same &= gap >= end || std::memcmp(now + gap, held.before.data() + gap, static_cast<std::size_t>(end - gap)) == 0;
      }
    }
    if (!same) names.push_back(held.name);
  }
  return names;
}

Fields::Fields(const json& object, Memory& memory, const Surroundings& surroundings, std::span<const std::string_view> hidden)
    : object_(object), memory_(memory), surroundings_(surroundings), hidden_(hidden) {}

bool Fields::is_hidden(std::string_view name) const { return std::find(hidden_.begin(), hidden_.end(), name) != hidden_.end(); }
bool Fields::has(std::string_view name) const { return object_.contains(name) && !is_hidden(name); }

const json& Fields::value(std::string_view name) {
  const auto found = object_.find(name);
  if (found == object_.end() || is_hidden(name)) reject(name, "nothing", "this field is required");
  used_.emplace(name);
  return *found;
}

Tensor Fields::read_alias(std::string_view name, const std::string& other, bool writable) {
  const bool is_tensor = has(other) && (object_[other].is_array() || object_[other].is_object() || object_[other].is_string());
  if (!is_tensor || (object_[other].is_object() && !object_[other].contains("dtype") && !object_[other].contains("file") && !object_[other].contains("ref")) ||
      !pending_.emplace(name).second) {
    reject(name, fmt::format("the name \"{}\"", other), "the name of another field that is a tensor");
  }
  const Tensor same = tensors_.contains(other) ? tensors_.find(other)->second : read(other, FieldKind::real, false);
  pending_.erase(std::string(name));
  const Tensor& storage = storages_.find(other)->second;
  memory_.hold(std::string(name), same, storage, writable);
  if (writable) writable_.emplace(name);
  storages_.emplace(name, storage);
  tensors_.emplace(name, same);
  return same;
}

Tensor Fields::read(std::string_view name, FieldKind kind, bool writable) {
  if (const auto known = tensors_.find(name); known != tensors_.end()) {  // read before, through an alias
    used_.emplace(name);
    memory_.hold(std::string(name), known->second, storages_.find(name)->second, writable);
    if (writable) writable_.emplace(name);
    return known->second;
  }
  const json& field = value(name);
  if (field.is_string()) return read_alias(name, field.get<std::string>(), writable);
  Placed placed;
  if (field.is_array()) {
    const DType dtype = kind == FieldKind::index ? DType::i64 : kind == FieldKind::boolean ? DType::boolean : DType::f32;
    placed.tensor = Tensor::empty(dtype, shape_of(field, name), name);
    placed.storage = placed.tensor;
    std::byte* element = placed.tensor.raw();
    put_list(field, 0, placed.tensor, element, name);
  } else if (field.is_object() && field.contains("ref")) {
    placed.tensor = read_reference(field, name, surroundings_);
    placed.storage = placed.tensor;
    if (!placed.tensor.is_dense()) {
      // The memory from its first element to its last: what lies behind need not be its own.
      const MemorySpan span = span_of(placed.tensor.view());
      placed.storage = Tensor::share(nullptr, placed.tensor.raw(), DType::u8, {span.end - span.begin}, {}, placed.tensor.device());
    }
  } else if (field.is_object() && field.contains("file")) {
    placed = read_file(field, name, surroundings_.folder);
  } else if (field.is_object()) {
    placed = read_object(field, name);
  } else {
    reject(name, std::string(kind_of(field)), "a tensor: a list, or an object with dtype, shape and data, or with file and key");
  }
  const bool is_ref = field.is_object() && field.contains("ref");
  if (!is_ref || surroundings_.watches_refs) memory_.hold(std::string(name), placed.tensor, placed.storage, writable);
  if (writable) writable_.emplace(name);
  storages_.emplace(name, placed.storage);
  tensors_.emplace(name, placed.tensor);
  return placed.tensor;
}

Tensor Fields::tensor(std::string_view name, FieldKind kind) { return read(name, kind, false); }
Tensor Fields::optional_tensor(std::string_view name, FieldKind kind) { return has(name) ? read(name, kind, false) : Tensor(); }
Tensor Fields::writable(std::string_view name) { return read(name, FieldKind::real, true); }
Tensor Fields::optional_writable(std::string_view name) { return has(name) ? read(name, FieldKind::real, true) : Tensor(); }

std::int64_t Fields::integer(std::string_view name) { return as_integer(value(name), name); }
std::optional<std::int64_t> Fields::optional_integer(std::string_view name) {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}
std::optional<double> Fields::optional_number(std::string_view name) {
  return has(name) ? std::optional(as_number(value(name), name)) : std::nullopt;
}
std::optional<bool> Fields::optional_boolean(std::string_view name) {
  if (!has(name)) return std::nullopt;
  const json& field = value(name);
  if (!field.is_boolean()) reject(name, std::string(kind_of(field)), "true or false");
  return field.get<bool>();
}

std::vector<std::int64_t> Fields::integers(std::string_view name) {
  const Tensor list = read(name, FieldKind::index, false);
  if (list.rank() != 1 || !is_integer(list.dtype())) {
    reject(name, fmt::format("{}{}", quire::name(list.dtype()), to_string(list.shape())), "a list of integers");
  }
  std::vector<std::int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(list.size(0)));
  for (std::int64_t i = 0; i < list.size(0); ++i) numbers.push_back(list.integer(std::array{i}));
  return numbers;
}

std::string Fields::text(std::string_view name) {
  const json& field = value(name);
  if (!field.is_string()) reject(name, std::string(kind_of(field)), "a string");
  return field.get<std::string>();
}

void Fields::finish() const {
  for (const auto& item : object_.items()) {
    if (!used_.contains(item.key()) && !is_hidden(item.key())) reject(item.key(), "an unknown key", "the fields of this op (design: case format)");
  }
}

}  // namespace quire::conformance
