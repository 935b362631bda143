// Where backend plugins and quire-probe are: beside the library, and where QUIRE_BACKEND_PATH says.
#include "discovery.h"

#include <quire/error.h>

#include <fmt/format.h>
#include <sys/auxv.h>

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quire {

namespace detail {

namespace {

// The mapped file that holds an address, by the kernel's own list: the loader's name may be relative to a working directory of the past.
std::string mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t from = 0, to = 0;
    char dash = 0;
    std::string rights, offset, device, node, path;
    if (!(words >> std::hex >> from >> dash >> to >> rights >> offset >> device >> node)) continue;
    if (wanted < from || wanted >= to) continue;
    std::getline(words >> std::ws, path);
    return path.starts_with('/') ? path : std::string();
  }
  return {};
}

double seconds_of(const std::optional<std::string>& text) {
  constexpr double usual = 10, most = 3600;
  if (!text || text->empty()) return usual;
  char* end = nullptr;
  const double seconds = std::strtod(text->c_str(), &end);
  if (*end != '\0' || end == text->c_str() || !std::isfinite(seconds) || seconds <= 0 || seconds > most) {
    reject("QUIRE_PROBE_SECONDS", fmt::format("\"{}\"", *text), fmt::format("a number of seconds above 0, to {}", most));
  }
  return seconds;
}

std::string joined(const std::filesystem::path& folder, const char* rest) { return (folder / rest).lexically_normal().string(); }

}  // namespace

std::string own_file() {
  const auto here = reinterpret_cast<const void*>(&own_file);
  std::string file = mapped_file(here);
  Dl_info info{};
  if (file.empty() && ::dladdr(here, &info) != 0 && info.dli_fname != nullptr && info.dli_fname[0] == '/') file = info.dli_fname;
  std::error_code error;
  const std::filesystem::path real = file.empty() ? std::filesystem::path() : std::filesystem::canonical(file, error);
  return error ? std::string() : real.string();
}

bool has_raised_privileges() { return ::getauxval(AT_SECURE) != 0; }

std::optional<std::string> trusted_variable(const std::string& name) {
  const char* value = has_raised_privileges() ? nullptr : std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

PluginPlaces places_of(const std::string& library, const Variables& variables, bool privileged) {
  PluginPlaces places;
  const auto heeded = [&](const char* name) -> std::optional<std::string> {
    std::optional<std::string> value = variables(name);
    if (privileged && value) {
      places.ignored.emplace_back(name);
      value.reset();
    }
    return value;
  };
  if (!library.empty()) {
    const std::filesystem::path folder = std::filesystem::path(library).parent_path();
    // A library lies in the folder of libraries, a program that holds it in that of programs.
    const bool program = folder.filename() == "bin";
    places.folders.push_back({joined(folder, program ? QUIRE_BIN_TO_LIB "/quire/backends" : "quire/backends"), "the library's own", "", 0});
    places.helpers = {joined(folder, program ? QUIRE_BIN_TO_LIBEXEC "/quire-probe" : QUIRE_LIB_TO_LIBEXEC "/quire-probe"),
                      joined(folder, program ? "quire-probe" : "../bin/quire-probe")};  // installed; build tree
  }
  if (const auto list = heeded("QUIRE_BACKEND_PATH"); list && !list->empty()) {
    std::istringstream entries(*list + ":");
    for (std::string entry; std::getline(entries, entry, ':');) {
      std::string why;
      if (entry.empty()) why = "empty: the working directory is never searched";
      else if (entry.front() != '/') why = "relative: a folder's path begins with /";
      places.folders.push_back({entry, "QUIRE_BACKEND_PATH", why, 0});
    }
  }
  places.probe_seconds = seconds_of(heeded("QUIRE_PROBE_SECONDS"));
  (void)heeded("QUIRE_BACKEND");
  return places;
}

}  // namespace detail

PluginPlaces plugin_places() {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  return detail::places_of(detail::own_file(), environment, detail::has_raised_privileges());
}

}  // namespace quire
