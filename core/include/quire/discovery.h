// Where backend plugins are looked for, and what was found there.
#pragma once

#include <quire/backend_status.h>

#include <cstddef>
#include <string>
#include <vector>

namespace quire {

/// A folder that is searched, or an entry of QUIRE_BACKEND_PATH that is not.
struct PluginFolder {
  std::string path;        ///< as it was given
  std::string origin;      ///< "the library's own", or the variable that names it
  std::string not_searched;  ///< why not; empty where it is searched
  std::size_t candidates = 0;  ///< filled by `discover`
};

/// What a search goes by. Nothing in it depends on the working directory.
struct PluginPlaces {
  std::vector<PluginFolder> folders;        ///< the first has precedence
  std::vector<std::string> helpers;         ///< where quire-probe may be, the first that is there is used
  std::vector<std::string> taken_names;     ///< the built-in backends'
  std::vector<std::string> ignored;         ///< variables that are set and not heeded, since the process has raised privileges
  double probe_seconds = 10;
  VersionRange versions;
};

struct Discovery {
  PluginPlaces places;
  std::string helper;                   ///< the quire-probe that was used; empty: none is there
  std::vector<BackendStatus> plugins;   ///< every candidate, folder by folder, by name within one
};

/// The places of this process: beside the library, then QUIRE_BACKEND_PATH. Raises invalid_argument (QUIRE_PROBE_SECONDS).
PluginPlaces plugin_places();

/// Probes every candidate, each in a process of its own, and loads those that can be used, for good. A bad plugin is a status with a reason.
Discovery discover(PluginPlaces places);

/// This process's own: made at the first call, once.
const Discovery& discovery();

}  // namespace quire
