// The parts of a search for plugins that tests look at one by one.
#pragma once

#include <quire/discovery.h>
#include <quire/registry.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace quire::detail {

/// A variable's value, or none.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

/// The places of a process whose library (or static program) is the file `library`. `privileged`: its variables are not heeded.
PluginPlaces places_of(const std::string& library, const Variables& variables, bool privileged);

/// The file that holds this very code: libquire, or the program where it is linked statically. Empty where the system does not tell.
std::string own_file();
/// Whether the process has more rights than whoever started it.
bool has_raised_privileges();
/// The environment, in which a process with raised privileges sees nothing.
std::optional<std::string> trusted_variable(const std::string& name);

/// Makes the default of a plugin's name, from its file's: "quire_cuda.so" is cuda.
std::string name_from_file(const std::string& path);

struct Accepted {
  std::unique_ptr<Backend> backend;  ///< null where there is a fault
  PluginFault fault = PluginFault::none;
  std::string reason;
};
/// Asks for the table and checks it, its versions and what it says of itself. Raises what `describe` reports.
Accepted accept(quire_backend_query_fn query, std::string path, const VersionRange& versions);

}  // namespace quire::detail
