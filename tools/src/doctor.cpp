// quire doctor: why a backend can or can't be used here, and what to do about it.
#include "backend_words.h"
#include "commands.h"

#include <quire/discovery.h>
#include <quire/error.h>
#include <quire/registry.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

extern char** environ;

namespace quire::tools {

namespace {

using nlohmann::json;

bool any_begins(const std::vector<std::string>& names, std::initializer_list<std::string_view> starts) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return std::string_view(name).starts_with(start); });
  });
}

// How to see for oneself what a probe sees.
std::string by_hand(const BackendStatus& status, const Discovery& found) {
  return fmt::format("{} {} {} {}", found.helper, status.path, status.asked.least, status.asked.most);
}

std::string advice(const BackendStatus& status, const Discovery& found) {
  switch (status.fault) {
    case PluginFault::none: return {};
    case PluginFault::unreadable: return "let this user read the file";
    case PluginFault::not_a_library: return "build or copy the plugin again, or take the file out of the folder";
    case PluginFault::other_machine: return "build the plugin for this machine, or take it out of the folder";
    case PluginFault::missing_dependency: return "install what holds these libraries, or add their folder to LD_LIBRARY_PATH";
    case PluginFault::unresolved_symbol:
      return any_begins(status.unresolved, {"__asan_", "__tsan_", "__ubsan_", "__lsan_"})
                 ? "it is built with a sanitizer: use it with a Quire that is built with the same one, or build it without"
                 : "build the plugin again with the libraries of this machine, and link all that it uses";
    case PluginFault::not_loadable: return fmt::format("see what the loader does: LD_DEBUG=libs,versions {}", by_hand(status, found));
    case PluginFault::no_query: return "take the file out of the folder; if it is a plugin, define quire_backend_query with QUIRE_BACKEND_EXPORT";
    case PluginFault::refused: return "those are the plugin's own words: do as it says, or take a build of it for this library's versions";
    case PluginFault::version:
      return status.abi_version && *status.abi_version > status.asked.most ? "take a newer Quire, or an older build of the plugin"
                                                                           : "build the plugin with this library's quire/backend.h";
    case PluginFault::semantics: return "take the plugin and the library of one release";
    case PluginFault::bad_table:
    case PluginFault::bad_answer:
    case PluginFault::threw: return "a fault of the plugin: build it again with this library's quire/backend.h, whose comments are the rules, or tell its makers";
    case PluginFault::crashed: return fmt::format("see it crash under a debugger: gdb --args {}", by_hand(status, found));
    case PluginFault::hung: return fmt::format("set QUIRE_PROBE_SECONDS if it is only slow; else see where it waits: gdb --args {}", by_hand(status, found));
    case PluginFault::name_taken: return "take one of the two out of its folder, or name the folders in another order";
    case PluginFault::unavailable: return "install or start the driver or device that it names, and let this user use it";
    case PluginFault::no_device: return "see whether the device is visible here (CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, the container's options)";
    case PluginFault::no_helper: return "install quire-probe, which is a part of Quire, at one of these places, as a program that may be run";
  }
  return {};
}

struct Variable {
  std::string name;
  std::optional<std::string> value;
  bool heeded;
};

// What loading goes by, set or not, and whatever else is set that changes what a backend does.
std::vector<Variable> variables(const Discovery& found) {
  std::vector<Variable> all;
  const auto add = [&](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    const auto& ignored = found.places.ignored;
    all.push_back({name, value != nullptr ? std::optional<std::string>(value) : std::nullopt, std::count(ignored.begin(), ignored.end(), name) == 0});
  };
  const std::vector<std::string> first = {"QUIRE_BACKEND", "QUIRE_BACKEND_PATH", "QUIRE_PROBE_SECONDS"};
  for (const std::string& name : first) add(name);
  std::vector<std::string> others;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const bool concerns = name.starts_with("QUIRE_") || name == "LD_LIBRARY_PATH" || name == "LD_PRELOAD" || name.ends_with("_VISIBLE_DEVICES");
    if (concerns && std::count(first.begin(), first.end(), name) == 0) others.push_back(name);
  }
  std::sort(others.begin(), others.end());
  for (const std::string& name : others) add(name);
  return all;
}

std::string folder_words(const PluginFolder& folder) {
  return folder.not_searched.empty() ? fmt::format("{} candidate{}", folder.candidates, folder.candidates == 1 ? "" : "s") : "not searched: " + folder.not_searched;
}

struct Choice {
  std::string name;  // empty: none
  std::string why;
};

Choice choice(const std::vector<Variable>& environment) {
  const Variable& named = environment.front();
  const bool by_name = named.heeded && named.value && !named.value->empty();
  try {
    const Backend& chosen = default_backend();
    return {std::string(chosen.name()), by_name ? std::string("QUIRE_BACKEND names it")
                                                : fmt::format("its rank, {}, is the highest among the available; negative ones are never taken by themselves", chosen.info().rank)};
  } catch (const Error& error) {
    return {"", error.what()};
  }
}

json status_json(const BackendStatus& status, const Discovery& found) {
  json entry{{"name", status.name}, {"path", status.path}, {"status", status.available ? "available" : "unavailable"}, {"asked", {status.asked.least, status.asked.most}}};
  entry["abi_version"] = status.abi_version ? json(*status.abi_version) : json();
  entry["semantics_version"] = status.semantics_version ? json(*status.semantics_version) : json();
  for (const auto& [key, text] : {std::pair{"version", &status.version}, {"description", &status.description}, {"driver", &status.driver}}) {
    if (!text->empty()) entry[key] = *text;
  }
  if (!status.version.empty()) {
    entry["rank"] = status.rank;
    entry["build"] = build_names(status.build);
  }
  entry["devices"] = json::array();
  for (const DeviceReport& device : status.devices) entry["devices"].push_back(device_json(device));
  if (status.available) return entry;
  entry["fault"] = name(status.fault);
  entry["reason"] = status.reason;
  entry["missing"] = status.missing;
  entry["unresolved"] = status.unresolved;
  entry["advice"] = advice(status, found);
  return entry;
}

void line(std::string_view left, std::string_view what, std::string_view text) { fmt::print("{:<12} {:<20} {}\n", left, what, text); }

void print_status(const BackendStatus& status, const Discovery& found) {
  line(printable(status.name), status.available ? "available" : "unavailable", printable(status.available ? status.description : status.reason));
  line("", "path", printable(status.path));
  const auto said = [](const std::optional<std::uint32_t>& version) { return version ? fmt::format("{}", *version) : std::string("not told"); };
  line("", "versions", fmt::format("asked for ABI {} to {}; speaks {}, semantics {}", status.asked.least, status.asked.most, said(status.abi_version),
                                   said(status.semantics_version)));
  if (!status.version.empty()) {
    const std::vector<std::string> build = build_names(status.build);
    line("", "build", fmt::format("{} ({}), rank {}", printable(status.version), build.empty() ? "plain" : fmt::format("{}", fmt::join(build, "+")), status.rank));
  }
  if (!status.driver.empty()) line("", "driver", printable(status.driver));
  for (const DeviceReport& device : status.devices) line("", "device", device_words(device));
  for (const std::string& library : status.missing) line("", "missing", printable(library));
  for (const std::string& symbol : status.unresolved) line("", "unresolved", printable(symbol));
  if (!status.available) line("", "what to do", printable(advice(status, found)));
}

void print_text(const std::vector<BackendStatus>& all, const Discovery& found, const std::vector<Variable>& environment, const Choice& chosen) {
  line("library", "version", library_version());
  line("", "ABI", fmt::format("{} to {}", found.places.versions.least, found.places.versions.most));
  line("", "semantics", fmt::format("{}", QUIRE_SEMANTICS_VERSION));
  for (const Variable& variable : environment) {
    line(&variable == environment.data() ? "environment" : "", variable.name,
         fmt::format("{}{}", variable.value ? printable(*variable.value) : "not set", variable.heeded ? "" : " (not heeded: this process has raised privileges)"));
  }
  line("probe", "program", found.helper.empty() ? fmt::format("not there: {}", fmt::join(found.places.helpers, ", ")) : found.helper);
  line("", "time limit", fmt::format("{} s", found.places.probe_seconds));
  for (const PluginFolder& folder : found.places.folders) {
    line(&folder == found.places.folders.data() ? "folders" : "", folder.origin == "QUIRE_BACKEND_PATH" ? folder.origin : "the library's own",
         fmt::format("\"{}\": {}", printable(folder.path), folder_words(folder)));
  }
  for (const BackendStatus& status : all) {
    fmt::print("\n");
    print_status(status, found);
  }
  fmt::print("\n");
  line("default", chosen.name.empty() ? "none" : chosen.name, chosen.why);
}

json report(const std::vector<BackendStatus>& all, const Discovery& found, const std::vector<Variable>& environment, const Choice& chosen) {
  json whole{{"library", {{"version", library_version()}, {"abi", {found.places.versions.least, found.places.versions.most}}, {"semantics", QUIRE_SEMANTICS_VERSION}}}};
  for (const Variable& variable : environment) {
    whole["environment"].push_back({{"name", variable.name}, {"value", variable.value ? json(*variable.value) : json()}, {"heeded", variable.heeded}});
  }
  whole["probe"] = {{"program", found.helper.empty() ? json() : json(found.helper)}, {"places", found.places.helpers}, {"seconds", found.places.probe_seconds}};
  whole["folders"] = json::array();
  for (const PluginFolder& folder : found.places.folders) {
    whole["folders"].push_back({{"path", folder.path}, {"origin", folder.origin}, {"searched", folder.not_searched.empty()}, {"candidates", folder.candidates}});
    if (!folder.not_searched.empty()) whole["folders"].back()["reason"] = folder.not_searched;
  }
  for (const BackendStatus& status : all) whole["backends"].push_back(status_json(status, found));
  whole["default"] = {{"name", chosen.name.empty() ? json() : json(chosen.name)}, {"why", chosen.why}};
  return whole;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("doctor", "Tell where backends are looked for, why each can or can't be used, and what to do about it");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print one JSON object");
  command->callback([as_json, &exit_code] {
    exit_code = 0;
    const std::vector<BackendStatus>& all = backends();
    const Discovery& found = discovery();
    const std::vector<Variable> environment = variables(found);
    const Choice chosen = choice(environment);
    if (*as_json) {
      fmt::print("{}\n", json_text(report(all, found, environment, chosen)));
    } else {
      print_text(all, found, environment, chosen);
    }
  });
}

}  // namespace quire::tools
