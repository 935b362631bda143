// Finds backend plugins, has each probed by a process of its own, and loads those that can be used.
#include "discovery.h"

#include "findings.h"
#include "helper_runs.h"
#include "table_check.h"

#include <quire/registry.h>

#include <fmt/format.h>
#include <unistd.h>

#if QUIRE_LOADS_PLUGINS
#include <dlfcn.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

namespace quire {

namespace detail {

std::string name_from_file(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  if (name.starts_with("quire_")) name.erase(0, 6);
  return name;
}

namespace {

constexpr std::size_t probes_at_once = 8;

// The regular files of a folder that end in .so, by name.
std::vector<std::string> candidates_in(PluginFolder& folder, std::set<std::string>& searched) {
  std::vector<std::string> files;
  if (!folder.not_searched.empty()) return files;
  std::error_code error;
  const std::string real = std::filesystem::canonical(folder.path, error).string();
  if (error) {
    folder.not_searched = error == std::errc::no_such_file_or_directory ? "not there" : error.message();
    return files;
  }
  if (!searched.insert(real).second) {
    folder.not_searched = "searched already";
    return files;
  }
  std::filesystem::directory_iterator entry(real, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (name.ends_with(".so") && entry->is_regular_file(unknown)) files.push_back((std::filesystem::path(folder.path) / name).string());
  }
  if (error) folder.not_searched = fmt::format("can't be read: {}", error.message());
  std::sort(files.begin(), files.end());
  folder.candidates = files.size();
  return files;
}

std::string signal_words(int number) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  const char *name = ::sigabbrev_np(number), *words = ::sigdescr_np(number);
  if (name != nullptr && words != nullptr) return fmt::format("SIG{} ({})", name, words);
#endif
  return fmt::format("signal {}", number);
}

void fault_of(BackendStatus& status, PluginFault fault, std::string reason) {
  status.fault = fault;
  status.reason = std::move(reason);
}

// What the probe's end and its findings say.
void judge(const HelperRun& run, double seconds, const std::string& helper, BackendStatus& status) {
  const std::string guess = status.name;
  const ReadFindings found = read_findings(run.findings, status);
  if (status.name.empty()) status.name = guess;
  const std::string stage = found.stage.empty() ? "" : fmt::format(" ({})", found.stage);
  const std::string said = run.said.empty() ? "" : fmt::format("; it said: {}", run.said);
  switch (run.end) {
    case HelperRun::End::not_started:
      fault_of(status, PluginFault::no_helper, fmt::format("{} can't be started to try it: {}", helper, std::strerror(run.number)));
      return;
    case HelperRun::End::timed_out:
      fault_of(status, PluginFault::hung, fmt::format("it did not answer within {} s{}{}", seconds, stage, said));
      return;
    case HelperRun::End::signalled:
      fault_of(status, PluginFault::crashed, fmt::format("it crashed when probed{}: {}{}", stage, signal_words(run.number), said));
      return;
    case HelperRun::End::exited:
    case HelperRun::End::unknown: break;
  }
  if (found.complete && (run.end == HelperRun::End::unknown || run.number == 0)) return;
  fault_of(status, PluginFault::crashed,
           run.end == HelperRun::End::unknown ? fmt::format("it ended the process when probed{}{}", stage, said)
                                              : fmt::format("it ended the process when probed{}: exit status {}{}", stage, run.number, said));
}

#if QUIRE_LOADS_PLUGINS
// Into this process, for good. What the probe saw must still be so.
void load(BackendStatus& status) {
  ::dlerror();
  void* library = ::dlopen(status.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* words = ::dlerror();
    return fault_of(status, PluginFault::not_loadable, fmt::format("a process of its own can load it, this one can't: {}", words != nullptr ? words : "no reason given"));
  }
  const auto query = reinterpret_cast<quire_backend_query_fn>(::dlsym(library, QUIRE_BACKEND_QUERY_SYMBOL));
  if (query == nullptr) return fault_of(status, PluginFault::no_query, "its file was changed after it was probed: no " QUIRE_BACKEND_QUERY_SYMBOL);
  const std::string expected = status.name;
  try {
    auto [backend, fault, reason] = accept(query, status.path, status.asked);
    if (backend != nullptr && backend->name() != expected) {
      fault = PluginFault::bad_answer;
      reason = fmt::format("it was {} when it was probed and is {} now", expected, backend->name());
    }
    if (fault != PluginFault::none) return fault_of(status, fault, reason);
    if (backend->devices().empty()) return fault_of(status, PluginFault::no_device, "no device");
    status.available = true;
    status.backend = backend.release();  // lives as long as the process
  } catch (const std::exception& error) {
    fault_of(status, PluginFault::bad_answer, error.what());
  } catch (...) {
    fault_of(status, PluginFault::threw, "it threw across the C ABI");
  }
}
#endif

}  // namespace

Accepted accept(quire_backend_query_fn query, std::string path, const VersionRange& versions) {
  const quire_host host{sizeof host, QUIRE_ABI_VERSION, QUIRE_VERSION};
  const char* reason = nullptr;
  const quire_backend_table* table = query(&host, versions.least, versions.most, &reason);
  if (table == nullptr) return {nullptr, PluginFault::refused, reason != nullptr ? reason : "it hands out no table and gives no reason"};
  if (std::string fault = version_fault(*table, versions); !fault.empty()) return {nullptr, PluginFault::version, std::move(fault)};
  if (std::string fault = table_fault(*table); !fault.empty()) return {nullptr, PluginFault::bad_table, std::move(fault)};
  if (std::string fault = semantics_fault(*table); !fault.empty()) return {nullptr, PluginFault::semantics, std::move(fault)};
  auto backend = std::make_unique<Backend>(table, std::move(path));
  if (std::string fault = info_fault(backend->info()); !fault.empty()) return {nullptr, PluginFault::bad_answer, std::move(fault)};
  return {std::move(backend), PluginFault::none, {}};
}

}  // namespace detail

Discovery discover(PluginPlaces places) {
  Discovery found;
  std::set<std::string> searched;
  for (PluginFolder& folder : places.folders) {
    for (const std::string& file : detail::candidates_in(folder, searched)) {
      BackendStatus status;
      status.path = file;
      status.name = detail::name_from_file(file);
      status.asked = places.versions;
      found.plugins.push_back(std::move(status));
    }
  }
  for (const std::string& helper : places.helpers) {
    if (found.helper.empty() && ::access(helper.c_str(), X_OK) == 0) found.helper = helper;
  }
#if QUIRE_LOADS_PLUGINS
  if (found.helper.empty()) {
    for (BackendStatus& status : found.plugins) {
      detail::fault_of(status, PluginFault::no_helper,
                       places.helpers.empty() ? "not probed: where this library lies is not known, so quire-probe can't be found"
                                              : fmt::format("not probed: quire-probe is neither {}", fmt::join(places.helpers, " nor ")));
    }
  } else {
    std::vector<std::vector<std::string>> commands;
    for (const BackendStatus& status : found.plugins) {
      commands.push_back({found.helper, status.path, std::to_string(places.versions.least), std::to_string(places.versions.most)});
    }
    const std::vector<detail::HelperRun> runs = detail::run_helpers(commands, places.probe_seconds, detail::probes_at_once);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      BackendStatus& status = found.plugins[i];
      detail::judge(runs[i], places.probe_seconds, found.helper, status);
      if (status.fault != PluginFault::none) continue;
      if (std::count(places.taken_names.begin(), places.taken_names.end(), status.name) != 0) {
        detail::fault_of(status, PluginFault::name_taken, fmt::format("its name, {}, is a built-in backend's", status.name));
        continue;
      }
      const auto first = std::find_if(found.plugins.begin(), found.plugins.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const BackendStatus& other) { return other.available && other.name == status.name; });
      if (first != found.plugins.begin() + static_cast<std::ptrdiff_t>(i)) {
        detail::fault_of(status, PluginFault::name_taken, fmt::format("its name, {}, is taken by {}", status.name, first->path));
        continue;
      }
      detail::load(status);
    }
  }
#else
  for (BackendStatus& status : found.plugins) {
    detail::fault_of(status, PluginFault::not_loadable, "this program is linked statically: it loads no plugins");
  }
#endif
  found.places = std::move(places);
  return found;
}

}  // namespace quire
