// Splitting a text into JSON values.
#include "case_stream.h"

#include "case/exact_json.h"

#include <quire/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace quire::tools {

using nlohmann::json;

namespace {

constexpr int deepest = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::int64_t line_of(std::string_view text, std::size_t offset) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
}

// One past the value that begins at `begin`, by its brackets and strings alone; bounds the depth, which the parser and the printer recurse on.
std::size_t value_end(std::string_view text, std::size_t begin) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (++depth > deepest) reject("case", fmt::format("line {}: lists and objects nested deeper than {}", line_of(text, i), deepest), "flatter JSON");
    }
    if (c == '}' || c == ']') --depth;
    if (depth <= 0 && (c == '}' || c == ']' || (c == '\n' && i > begin))) return i + 1;
  }
  return text.size();
}

json parse(std::string_view text, std::size_t begin, std::size_t end) {
  try {
    return conformance::parse_exact(text.substr(begin, end - begin));
  } catch (const Error& error) {
    reject("case", fmt::format("the JSON that begins at line {}: {}", line_of(text, begin), error.what()), "JSON objects");
  }
}

}  // namespace

void for_each_case(std::string_view text, const std::function<bool(const json&)>& each) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark
  bool any = false;
  for (std::size_t begin = 0; begin < text.size();) {
    if (is_space(text[begin])) {
      ++begin;
      continue;
    }
    const std::size_t end = value_end(text, begin);
    const json value = parse(text, begin, end);
    begin = end;
    any = any || !value.is_array() || !value.empty();
    if (!value.is_array()) {
      if (!each(value)) return;
      continue;
    }
    for (const json& entry : value) {
      if (!each(entry)) return;
    }
  }
  if (!any) reject("case", "no case", "a JSON object, a list of them, or JSON lines");
}

}  // namespace quire::tools
