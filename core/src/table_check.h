// What a plugin hands to the host, looked at before it is used.
#pragma once

#include <quire/backend_status.h>

#include <string>

namespace quire::detail {

/// Each answers what is wrong in one line, or nothing.
/// The sizes and entries of a table; its versions apart.
std::string table_fault(const quire_backend_table& table);
/// A table's versions against what the host speaks.
std::string version_fault(const quire_backend_table& table, const VersionRange& versions);
std::string semantics_fault(const quire_backend_table& table);
/// What `describe` answered.
std::string info_fault(const quire_backend_info& info);
/// What `device_info` answered.
std::string device_fault(const quire_device_info& info);
/// A name that --backend takes: 1 to 32 of a-z, 0-9, - and _.
bool is_backend_name(std::string_view name);
/// "version 3", "versions 3 to 5".
std::string words_of(const VersionRange& versions);

/// Devices beyond this many are a slip.
constexpr std::int32_t most_devices = 4096;

}  // namespace quire::detail
