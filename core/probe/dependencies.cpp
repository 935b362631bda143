// Why the loader refuses a plugin. The loader itself names the first library or symbol only.
#include "dependencies.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

namespace quire {

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
  return text;
}

// Where the plugin's own search path has it, else the bare name, for the loader to look up.
std::string place_of(const std::string& library, const std::string& plugin, std::string_view run_path) {
  if (library.find('/') != std::string::npos) return library;
  while (!run_path.empty()) {
    const std::size_t colon = run_path.find(':');
    const std::string entry(run_path.substr(0, colon));
    run_path.remove_prefix(colon == std::string_view::npos ? run_path.size() : colon + 1);
    const std::string folder = replaced(replaced(entry, "${ORIGIN}", folder_of(plugin)), "$ORIGIN", folder_of(plugin));
    const std::string file = folder + "/" + library;
    if (!folder.empty() && ::access(file.c_str(), R_OK) == 0) return file;
  }
  return library;
}

// The loader's "NAME: cannot open shared object file: ...": what is missing may be a library's own need.
std::string missing_in(const std::string& words) {
  const std::size_t end = words.find(": cannot open shared object file");
  return end == std::string::npos ? std::string() : words.substr(0, end);
}

void add(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  const std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  return fmt::format("{}{}", fmt::join(some, ", "), names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

}  // namespace

void explain_refusal(const std::string& path, const detail::ElfFacts& facts, const std::string& words, BackendStatus& status) {
  std::string other;
  for (const std::string& library : facts.needed) {
    ::dlerror();
    // Global: the symbols are looked up by name below. A library that is only needed is not bound.
    if (::dlopen(place_of(library, path, facts.run_path).c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr) continue;
    const char* said = ::dlerror();
    const std::string missing = missing_in(said != nullptr ? said : "");
    if (missing.empty()) {
      other = said != nullptr ? said : "";
    } else {
      add(status.missing, missing);
    }
  }
  if (!status.missing.empty()) {
    status.fault = PluginFault::missing_dependency;
    status.reason = fmt::format("it needs {}, which can't be found", listed(status.missing));
    return;
  }
  for (const std::string& symbol : facts.undefined) {
    ::dlerror();
    if (::dlsym(RTLD_DEFAULT, symbol.c_str()) == nullptr && ::dlerror() != nullptr) add(status.unresolved, symbol);
  }
  if (!status.unresolved.empty() && other.empty()) {
    status.fault = PluginFault::unresolved_symbol;
    status.reason = fmt::format("it uses {}, which nothing that it needs defines", listed(status.unresolved));
    return;
  }
  status.fault = PluginFault::not_loadable;
  status.reason = fmt::format("it can't be loaded: {}", words);
}

}  // namespace quire
