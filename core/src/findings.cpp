// What quire-probe tells of a plugin, as lines "key value" on a pipe.
#include "findings.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace quire {

namespace {

constexpr std::array<std::string_view, 20> fault_names = {"none",        "unreadable", "not_a_library", "other_machine", "missing_dependency", "unresolved_symbol", "not_loadable",
                                                          "no_query",    "refused",    "version",       "semantics",     "bad_table",          "bad_answer",        "threw",
                                                          "crashed",     "hung",       "name_taken",    "unavailable",   "no_device",          "no_helper"};
static_assert(fault_names.size() == static_cast<std::size_t>(PluginFault::no_helper) + 1);

}  // namespace

std::string_view name(PluginFault fault) { return fault_names[static_cast<std::size_t>(fault)]; }

namespace detail {

namespace {

std::string text_of(std::string_view word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    unsigned byte = 0;
    if (word[i] == '\\' && i + 2 < word.size() && std::from_chars(&word[i + 1], &word[i + 1] + 2, byte, 16).ptr == &word[i + 1] + 2) {
      text += static_cast<char>(byte);
      i += 2;
    } else {
      text += word[i];
    }
  }
  return text;
}

template <typename T>
bool number(std::string_view text, T& value) {
  T read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  value = read;
  return true;
}

std::string_view first_word(std::string_view& rest) {
  const std::size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  return word;
}

void read_line(std::string_view key, std::string_view value, BackendStatus& status, ReadFindings& found) {
  const auto version = [&](std::optional<std::uint32_t>& to) {
    std::uint32_t read = 0;
    if (number(value, read)) to = read;
  };
  if (key == "stage") found.stage = text_of(value);
  if (key == "end") found.complete = true;
  if (key == "name") status.name = text_of(value);
  if (key == "reason") status.reason = text_of(value);
  if (key == "version") status.version = text_of(value);
  if (key == "description") status.description = text_of(value);
  if (key == "driver") status.driver = text_of(value);
  if (key == "abi") version(status.abi_version);
  if (key == "semantics") version(status.semantics_version);
  if (key == "build") number(value, status.build);
  if (key == "rank") number(value, status.rank);
  if (key == "missing") status.missing.push_back(text_of(value));
  if (key == "unresolved") status.unresolved.push_back(text_of(value));
  if (key == "fault") {
    for (std::size_t i = 0; i < fault_names.size(); ++i) {
      if (fault_names[i] == value) status.fault = static_cast<PluginFault>(i);
    }
  }
  if (key == "device") {
    DeviceReport device;
    if (number(first_word(value), device.type) && number(first_word(value), device.id) && number(first_word(value), device.memory_bytes)) {
      device.name = text_of(value);
      status.devices.push_back(device);
    }
  }
}

}  // namespace

std::string as_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\') {
      word += fmt::format("\\{:02x}", byte);
    } else {
      word += c;
    }
  }
  return word;
}

std::string write_findings(const BackendStatus& status) {
  std::string text;
  const auto line = [&text](std::string_view key, std::string_view value) {
    if (!value.empty()) text += fmt::format("{} {}\n", key, as_word(value));
  };
  line("fault", name(status.fault));
  line("reason", status.reason);
  line("name", status.name);
  line("version", status.version);
  line("description", status.description);
  line("driver", status.driver);
  if (status.abi_version) text += fmt::format("abi {}\n", *status.abi_version);
  if (status.semantics_version) text += fmt::format("semantics {}\n", *status.semantics_version);
  text += fmt::format("build {}\nrank {}\n", status.build, status.rank);
  for (const std::string& library : status.missing) line("missing", library);
  for (const std::string& symbol : status.unresolved) line("unresolved", symbol);
  for (const DeviceReport& device : status.devices) {
    text += fmt::format("device {} {} {} {}\n", device.type, device.id, device.memory_bytes, as_word(device.name));
  }
  return text + "end\n";
}

ReadFindings read_findings(std::string_view text, BackendStatus& status) {
  ReadFindings found;
  while (!text.empty() && !found.complete) {
    const std::size_t newline = text.find('\n');
    if (newline == std::string_view::npos) break;  // cut off
    std::string_view rest = text.substr(0, newline);
    text.remove_prefix(newline + 1);
    const std::string_view key = first_word(rest);
    read_line(key, rest, status, found);
  }
  return found;
}

}  // namespace detail

}  // namespace quire
