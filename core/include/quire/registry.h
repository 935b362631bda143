// The registry: which backends there are, what they can do, and which one is used.
#pragma once

#include <quire/backend_status.h>
#include <quire/dtype.h>
#include <quire/error.h>

#include <optional>
#include <string>
#include <vector>

namespace quire {

/// A loaded backend; a thin, readable face of its table. Lives as long as the process.
class Backend {
 public:
  Backend(const quire_backend_table* table, std::string path);

  std::string_view name() const { return info_.name; }
  std::string_view version() const { return info_.version; }
  std::string_view description() const { return info_.description; }
  const quire_backend_info& info() const { return info_; }
  const quire_backend_table& table() const { return *table_; }
  /// The plugin's file, or "(built in)".
  const std::string& path() const { return path_; }
  std::vector<quire_device_info> devices() const;
  /// The device that calls and streams are for where none is named.
  quire_device_info first_device() const;
  quire_contract contract(quire_op op, DType input, DType state) const;
  /// Empty when the backend runs exactly this call, else the reason why it does not.
  std::string unsupported_reason(quire_op op, const void* args) const;
  /// Asks `supports`, hands in the workspace, in the stream's order, and runs. Raises the backend's error. `device`: the stream's, where
  /// the tensors lie on the host; else theirs is taken, or the first.
  void run(quire_stream* stream, quire_op op, const void* args, std::optional<quire_device> device = {}) const;
  /// Raises the backend's last error for a status other than QUIRE_OK; `what` failed.
  void require(quire_status status, std::string_view what) const;

 private:
  const quire_backend_table* table_;
  std::string path_;
  quire_backend_info info_{};
};

/// Every backend that was found, the built-in ones first. The first call looks for plugins (`quire/discovery.h`) and may raise
/// invalid_argument (QUIRE_PROBE_SECONDS).
const std::vector<BackendStatus>& backends();
/// The backend of that name. Raises invalid_argument (`backend`) with the known names, or unavailable with the reason. A built-in one's
/// name starts no search for plugins.
const Backend& backend(std::string_view name);
/// QUIRE_BACKEND where it is set, else the available backend of highest rank; of equal ones the first that was found. Never one of negative rank.
const Backend& default_backend();

/// This library's version: "0.1.0".
std::string_view library_version();

/// "extend", "attend", ... by the ABI's number.
std::string_view op_name(quire_op op);

namespace detail {
/// The backends linked into the library; the `quire` target defines it, so that core names none.
std::vector<quire_backend_query_fn> built_in_backends();
}  // namespace detail

}  // namespace quire
