// How the commands name what a backend is.
#pragma once

#include <quire/backend_status.h>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace quire::tools {

/// QUIRE_BUILD_* bits: "debug", "asan", ...
std::vector<std::string> build_names(std::uint32_t bits);
/// "a processor (type 1, number 0, 64 MiB)"
std::string device_words(const DeviceReport& device);
nlohmann::json device_json(const DeviceReport& device);
/// JSON as text; bytes that are no UTF-8 (a plugin's words, a file's name) are replaced.
std::string json_text(const nlohmann::json& value);

}  // namespace quire::tools
