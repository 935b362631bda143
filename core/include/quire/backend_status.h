// What is known of a backend that was found: whether it can be used, and all that `quire doctor` tells.
#pragma once

#include <quire/backend.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

class Backend;

/// ABI versions, both ends included.
struct VersionRange {
  std::uint32_t least = QUIRE_ABI_VERSION_MIN;
  std::uint32_t most = QUIRE_ABI_VERSION;
};

/// What keeps a plugin from being used. `quire doctor` has a line of advice for each.
enum class PluginFault : std::uint8_t {
  none,
  unreadable,          ///< the file can't be read
  not_a_library,       ///< no ELF file, a cut one, or no shared library
  other_machine,       ///< another processor, word size or byte order
  missing_dependency,  ///< a library that it needs can't be found
  unresolved_symbol,   ///< nothing that it needs defines what it uses
  not_loadable,        ///< the loader refuses it for another reason
  no_query,            ///< it exports no quire_backend_query
  refused,             ///< it hands out no table
  version,             ///< the versions of the ABI do not meet
  semantics,           ///< it computes other laws
  bad_table,           ///< its table is short or has holes
  bad_answer,          ///< describe, device_count or device_info answers what they may not
  threw,               ///< an exception came across the C ABI
  crashed,             ///< a signal or an exit when it was probed
  hung,                ///< no answer in time
  name_taken,          ///< another backend of its name was there first
  unavailable,         ///< its driver or device is not there
  no_device,           ///< it has no device
  no_helper            ///< quire-probe is not there or can't be started, and nothing is loaded that was not probed
};

/// "unreadable", "other_machine", ...
std::string_view name(PluginFault fault);

struct DeviceReport {
  std::int32_t type = 0;
  std::int32_t id = 0;
  std::string name;
  std::int64_t memory_bytes = 0;  ///< 0 where unknown
};

/// One line of `quire backends`: a backend that can be used, or one that can't with the reason.
struct BackendStatus {
  std::string name;                  ///< what it calls itself; before it said so, what its file's name suggests
  bool available = false;
  std::string reason;                ///< empty when available
  std::string path;                  ///< the plugin's file, or "(built in)"
  const Backend* backend = nullptr;  ///< null when unavailable

  PluginFault fault = PluginFault::none;
  VersionRange asked;                         ///< the versions that it was asked for
  std::optional<std::uint32_t> abi_version;   ///< what its table says, where it got that far
  std::optional<std::uint32_t> semantics_version;
  std::string version, description, driver;   ///< its own words
  std::uint32_t build = 0;                    ///< QUIRE_BUILD_* bits
  std::int32_t rank = 0;
  std::vector<DeviceReport> devices;
  std::vector<std::string> missing;           ///< libraries that can't be found
  std::vector<std::string> unresolved;        ///< symbols that nothing defines
};

}  // namespace quire
