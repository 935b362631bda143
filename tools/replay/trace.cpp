// Reading a trace: JSON lines, each a request.
#include "trace.h"

#include <quire/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>

namespace quire::replay {

namespace {

using Json = nlohmann::json;

// No trace has as many; products of lengths stay far inside 64 bits.
constexpr std::int64_t most_tokens = std::int64_t{1} << 31;
constexpr double most_time = 0x1p52;

class Line {
 public:
  Line(const std::string& path, std::int64_t number, const std::string& text) : place_(fmt::format("{}:{}", path, number)) {
    fields_ = Json::parse(text, nullptr, false);
    if (!fields_.is_object()) reject(place_, printable(text), "a JSON object with timestamp, input_length, output_length, hash_ids");
  }

  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) const {
    const Json& value = field(name);
    const double given = value.is_number() ? value.get<double>() : std::nan("");
    if (!(given >= static_cast<double>(least) && given <= static_cast<double>(most)) || given != std::floor(given)) {
      reject(place_ + ": " + name, printable(value.dump()), fmt::format("a whole number from {} to {}", least, most));
    }
    return static_cast<std::int64_t>(given);
  }

  // Milliseconds; a fraction is dropped.
  std::int64_t time(const char* name) const {
    const Json& value = field(name);
    const double given = value.is_number() ? value.get<double>() : -1;
    if (!(given >= 0 && given <= most_time)) reject(place_ + ": " + name, printable(value.dump()), "milliseconds from 0 on");
    return static_cast<std::int64_t>(given);
  }

  std::vector<std::int64_t> ids(const char* name, std::int64_t most) const {
    const Json& value = field(name);
    const auto is_id = [](const Json& id) { return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int64_t>::max(); };
    if (!value.is_array() || static_cast<std::int64_t>(value.size()) > most || !std::all_of(value.begin(), value.end(), is_id)) {
      reject(place_ + ": " + name, printable(value.dump()), fmt::format("at most {} block ids, whole numbers from 0 on", most));
    }
    return value.get<std::vector<std::int64_t>>();
  }

 private:
  const Json& field(const char* name) const {
    const auto found = fields_.find(name);
    if (found == fields_.end()) reject(place_ + ": " + name, "nothing", "every request has it");
    return *found;
  }

  std::string place_;
  Json fields_;
};

std::int64_t up(std::int64_t x, std::int64_t step) { return (x + step - 1) / step; }

// Every block keeps its place; blocks past the share that a scale below the smallest block leaves are dropped.
void shrink(Request& request, std::int64_t block_size, double kept) {
  const std::int64_t all = up(request.prompt, trace_block_size);
  const std::int64_t blocks = std::clamp<std::int64_t>(std::llround(static_cast<double>(all) * kept), 1, all);
  const std::int64_t last = blocks < all ? trace_block_size : request.prompt - (all - 1) * trace_block_size;
  request.prompt = (blocks - 1) * block_size + up(last * block_size, trace_block_size);
  request.output = up(static_cast<std::int64_t>(std::ceil(static_cast<double>(request.output) * kept)) * block_size, trace_block_size);
  request.blocks.resize(std::min(request.blocks.size(), static_cast<std::size_t>(blocks)));
  request.block_size = block_size;
}

}  // namespace

TokenSource Request::source(std::int64_t position) const {
  const std::int64_t block = position / block_size;
  if (position < prompt && block < static_cast<std::int64_t>(blocks.size())) {
    return {blocks[static_cast<std::size_t>(block)], position % block_size, false};
  }
  return {number, position, true};
}

std::int64_t Trace::tokens() const {
  std::int64_t sum = 0;
  for (const Request& request : requests) sum += request.tokens();
  return sum;
}

std::int64_t Trace::longest() const {
  std::int64_t longest = 0;
  for (const Request& request : requests) longest = std::max(longest, request.tokens());
  return longest;
}

Trace read_trace(const std::string& path, std::int64_t start, std::int64_t count, double scale) {
  if (path == "-") return read_trace(std::cin, "standard input", start, count, scale);
  std::ifstream file(path);
  if (!file) reject("trace", "\"" + path + "\", which can't be opened", "a file of JSON lines");
  return read_trace(file, path, start, count, scale);
}

Trace read_trace(std::istream& file, const std::string& path, std::int64_t start, std::int64_t count, double scale) {
  Trace trace;
  trace.block_size = std::max<std::int64_t>(64, 64 * std::llround(trace_block_size * scale / 64));
  const double kept = std::min(1.0, scale * trace_block_size / 64);
  std::string text;
  std::int64_t number = 0, line_number = 0;
  while ((count == 0 || number < start + count) && std::getline(file, text)) {
    ++line_number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Line line(path, line_number, text);
    Request request;
    request.number = number++;
    request.arrival_ms = line.time("timestamp");
    request.prompt = line.number("input_length", 1, most_tokens);
    request.output = line.number("output_length", 0, most_tokens);
    request.blocks = line.ids("hash_ids", up(request.prompt, trace_block_size));
    shrink(request, trace.block_size, kept);
    if (request.number >= start) trace.requests.push_back(std::move(request));
  }
  if (file.bad()) reject("trace", "\"" + path + "\", which can't be read", "a file of JSON lines");
  if (trace.requests.empty()) {
    if (number == 0) reject("trace", "\"" + path + "\" without a request", "JSON lines, each a request");
    reject("--start", fmt::format("{}", start), fmt::format("0 to {}, the last request of the trace", number - 1));
  }
  std::stable_sort(trace.requests.begin(), trace.requests.end(), [](const Request& a, const Request& b) { return a.arrival_ms < b.arrival_ms; });
  return trace;
}

}  // namespace quire::replay
