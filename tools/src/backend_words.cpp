// How the commands name what a backend is.
#include "backend_words.h"

#include <quire/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace quire::tools {

std::vector<std::string> build_names(std::uint32_t bits) {
  std::vector<std::string> names;
  const std::pair<std::uint32_t, const char*> known[] = {
      {QUIRE_BUILD_DEBUG, "debug"}, {QUIRE_BUILD_ASAN, "asan"}, {QUIRE_BUILD_UBSAN, "ubsan"}, {QUIRE_BUILD_TSAN, "tsan"}};
  for (const auto& [bit, text] : known) {
    if ((bits & bit) != 0) names.emplace_back(text);
  }
  return names;
}

std::string device_words(const DeviceReport& device) {
  return fmt::format("{} (type {}, number {}, {})", printable(device.name), device.type, device.id,
                     device.memory_bytes == 0 ? "memory unknown" : fmt::format("{} MiB", device.memory_bytes >> 20));
}

nlohmann::json device_json(const DeviceReport& device) {
  return {{"type", device.type}, {"id", device.id}, {"name", device.name}, {"memory_bytes", device.memory_bytes}};
}

std::string json_text(const nlohmann::json& value) { return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace quire::tools
