// .safetensors files: named tensors behind a JSON header.
#include "safetensors.h"

#include "bytes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

namespace quire::arrays {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t longest_header = 100'000'000;  // the library's own limit
constexpr std::string_view metadata = "__metadata__";
constexpr std::string_view allowed_dtypes =
    "BOOL I8 U8 I16 I32 I64 F16 BF16 F32 F64 F8_E4M3 F8_E5M2";

struct Named {
  std::string_view name;
  DType dtype;
};

// In the order in which the library lays tensors out: widest first, so that each is aligned.
constexpr std::array<Named, QUIRE_DTYPE_COUNT> dtypes = {{{"I64", DType::i64},
                                                          {"F64", DType::f64},
                                                          {"F32", DType::f32},
                                                          {"I32", DType::i32},
                                                          {"BF16", DType::bf16},
                                                          {"F16", DType::f16},
                                                          {"I16", DType::i16},
                                                          {"F8_E4M3", DType::f8_e4m3fn},
                                                          {"F8_E5M2", DType::f8_e5m2},
                                                          {"I8", DType::i8},
                                                          {"U8", DType::u8},
                                                          {"BOOL", DType::boolean}}};

std::size_t place_of(DType dtype) {
  return static_cast<std::size_t>(
      std::find_if(dtypes.begin(), dtypes.end(),
                   [&](const Named& entry) { return entry.dtype == dtype; }) -
      dtypes.begin());
}

struct Entry {
  std::optional<DType> dtype;  // nothing where Quire has not what the file says
  std::string dtype_name;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct File {
  std::map<std::string, Entry> entries;
  Bytes data;
};

// Parses JSON that names no key of an object twice and is no deeper than a header.
Json parse_header(std::string_view text) {
  constexpr int deepest = 3;
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= deepest)
        reject("file", fmt::format("a safetensors header nested deeper than {}", deepest),
               "an object of tensors");
      keys.resize(static_cast<std::size_t>(depth) + 2);
      keys.back().clear();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys[static_cast<std::size_t>(depth)].insert(key).second) {
        reject("file", fmt::format("a safetensors header with {} twice", shown(key)),
               "each name once");
      }
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    reject("file", fmt::format("a safetensors header that is no JSON at byte {}", error.byte),
           "a JSON object");
  } catch (const Json::exception&) {
    reject("file", "a safetensors header with a number out of range", "a JSON object");
  }
}

std::int64_t whole_number(const Json& value, std::string_view what) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
    reject("file", std::string(what), "whole numbers of 0 or more below 2^63");
  }
  return value.get<std::int64_t>();
}

Entry read_entry(const std::string& key, const Json& fields, std::uint64_t data_size) {
  const std::string what = "safetensors tensor " + shown(key);
  if (!fields.is_object() || fields.size() != 3 || !fields.contains("dtype") ||
      !fields.contains("shape") || !fields.contains("data_offsets")) {
    reject("file", what + " with other fields", "dtype, shape and data_offsets");
  }
  Entry entry;
  const Json& dtype = fields["dtype"];
  if (!dtype.is_string()) reject("file", what + " whose dtype is no string", allowed_dtypes);
  entry.dtype_name = dtype.get<std::string>();
  for (const Named& named : dtypes) {
    if (named.name == entry.dtype_name) entry.dtype = named.dtype;
  }

  const Json& shape = fields["shape"];
  if (!shape.is_array() || shape.size() > max_rank)
    reject("file", what + " with such a shape", fmt::format("a list of at most {} axes", max_rank));
  for (const Json& axis : shape)
    entry.shape.push_back(whole_number(axis, what + " with such an axis"));

  const Json& offsets = fields["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2)
    reject("file", what + " with such data_offsets", "[begin, end]");
  entry.begin =
      static_cast<std::uint64_t>(whole_number(offsets[0], what + " with such data_offsets"));
  entry.end =
      static_cast<std::uint64_t>(whole_number(offsets[1], what + " with such data_offsets"));
  if (entry.begin > entry.end || entry.end > data_size) {
    reject("file", fmt::format("{} at bytes [{}, {}]", what, entry.begin, entry.end),
           fmt::format("a part of the {} bytes behind the header", data_size));
  }
  if (entry.dtype) {
    const std::uint64_t bytes = dense_bytes(*entry.dtype, entry.shape);
    if (bytes != entry.end - entry.begin) {
      reject("file",
             fmt::format("{} {}{} with {} bytes", what, entry.dtype_name, to_string(entry.shape),
                         entry.end - entry.begin),
             fmt::format("{} bytes", bytes));
    }
  }
  return entry;
}

// The tensors fill the bytes one behind the other, so no byte has two meanings or none.
void require_filled(const File& file) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string_view>> parts;
  for (const auto& [key, entry] : file.entries) parts.emplace_back(entry.begin, entry.end, key);
  std::sort(parts.begin(), parts.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end, key] : parts) {
    if (begin != at)
      reject("file", fmt::format("safetensors tensor {} at byte {}", shown(key), begin),
             fmt::format("byte {}, behind the one before", at));
    at = end;
  }
  if (at != file.data.size()) {
    reject("file",
           fmt::format("{} bytes behind the header, {} of them in tensors", file.data.size(), at),
           "every byte in a tensor");
  }
}

File read_file(Bytes bytes) {
  if (bytes.size() < 8)
    reject("file", fmt::format("a safetensors file of {} bytes", bytes.size()),
           "8 bytes of header size first");
  const auto length = number_at<std::uint64_t>(bytes, 0);
  if (length > bytes.size() - 8 || length > longest_header) {
    reject("file", fmt::format("a safetensors header of {} bytes", length),
           fmt::format("at most {}", std::min<std::uint64_t>(bytes.size() - 8, longest_header)));
  }
  File file;
  file.data = bytes.subspan(8 + length);
  const std::string_view text = text_of(bytes.subspan(8, length));
  if (!text.starts_with('{'))
    reject("file", "a safetensors header that begins with no {", "a JSON object");
  const Json header = parse_header(text);
  for (const auto& [key, fields] : header.items()) {
    if (key != metadata) file.entries.emplace(key, read_entry(key, fields, file.data.size()));
  }
  require_filled(file);
  return file;
}

Tensor read_tensor(const File& file, const std::string& key, const Entry& entry,
                   std::optional<DType> as) {
  const std::string what = "safetensors tensor " + shown(key);
  if (!entry.dtype)
    reject("file", fmt::format("{} of dtype {}", what, shown(entry.dtype_name)), allowed_dtypes);
  if (as && *as != *entry.dtype) {
    reject("file", fmt::format("{} of {} to read as {}", what, name(*entry.dtype), name(*as)),
           fmt::format("{}, as nothing is converted", name(*entry.dtype)));
  }
  return copy_dense(*entry.dtype, entry.shape,
                    file.data.subspan(entry.begin, entry.end - entry.begin));
}

std::vector<std::string> names_of(const File& file) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : file.entries) names.push_back(key);
  return names;
}

}  // namespace

std::vector<std::string> safetensors_names(Bytes bytes) { return names_of(read_file(bytes)); }

Tensor read_safetensors_entry(Bytes bytes, std::string_view key, std::optional<DType> as) {
  const File file = read_file(bytes);
  const auto found = file.entries.find(std::string(key));
  if (found == file.entries.end()) {
    reject("key", shown(key),
           file.entries.empty() ? "none, as the file holds no tensors" : listed(names_of(file)));
  }
  return read_tensor(file, found->first, found->second, as);
}

std::map<std::string, Tensor> read_safetensors(Bytes bytes) {
  const File file = read_file(bytes);
  std::map<std::string, Tensor> tensors;
  for (const auto& [key, entry] : file.entries)
    tensors.emplace(key, read_tensor(file, key, entry, {}));
  return tensors;
}

std::vector<std::byte> write_safetensors(const std::map<std::string, Tensor>& tensors) {
  std::vector<std::pair<std::string, Tensor>> ordered;
  for (const auto& [key, tensor] : tensors) {
    if (key.empty() || key == metadata)
      reject("key", shown(key), "a name other than \"\" and \"__metadata__\"");
    ordered.emplace_back(key, host_dense(tensor));
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return place_of(a.second.dtype()) < place_of(b.second.dtype());
  });

  // Written by hand, as the library has the fields in this order.
  std::string header = "{";
  std::uint64_t at = 0;
  for (const auto& [key, tensor] : ordered) {
    const std::uint64_t end = at + dense_bytes(tensor.dtype(), tensor.shape());
    std::string name_text;
    try {
      name_text = Json(key).dump();
    } catch (const Json::exception&) {
      reject("key", shown(key), "names in UTF-8");
    }
    header +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                    header.size() > 1 ? "," : "", name_text, dtypes[place_of(tensor.dtype())].name,
                    Json(tensor.shape()).dump(), at, end);
    at = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  std::vector<std::byte> file = with_capacity(8 + header.size() + at);
  append_number(file, static_cast<std::uint64_t>(header.size()));
  append_text(file, header);
  for (const auto& [key, tensor] : ordered) append_bytes(file, bytes_of(tensor));
  return file;
}

}  // namespace quire::arrays
