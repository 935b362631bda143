// What a plugin hands to the host, looked at before it is used. Part of the library and of quire-probe.
#include "table_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace quire::detail {

namespace {

struct Entry {
  std::string_view name;
  std::size_t offset;
};
#define QUIRE_ENTRY(name) \
  Entry { #name, offsetof(quire_backend_table, name) }
// All of them are mandatory: none was added to a frozen version yet.
constexpr std::array entries = {
    QUIRE_ENTRY(describe),      QUIRE_ENTRY(device_count),   QUIRE_ENTRY(device_info), QUIRE_ENTRY(last_error),   QUIRE_ENTRY(allocate),
    QUIRE_ENTRY(free),          QUIRE_ENTRY(copy),           QUIRE_ENTRY(stream_create), QUIRE_ENTRY(stream_destroy), QUIRE_ENTRY(synchronize),
    QUIRE_ENTRY(event_create),  QUIRE_ENTRY(event_destroy),  QUIRE_ENTRY(event_record), QUIRE_ENTRY(event_wait),  QUIRE_ENTRY(event_synchronize),
    QUIRE_ENTRY(supports),      QUIRE_ENTRY(workspace),      QUIRE_ENTRY(run),         QUIRE_ENTRY(contract),     QUIRE_ENTRY(capture),
    QUIRE_ENTRY(launch),        QUIRE_ENTRY(step_free)};
#undef QUIRE_ENTRY
constexpr std::size_t entry_size = sizeof(void (*)());
static_assert(offsetof(quire_backend_table, describe) + entries.size() * entry_size == sizeof(quire_backend_table), "an entry is missing here");

}  // namespace

std::string table_fault(const quire_backend_table& table) {
  std::vector<std::string_view> beyond, holes;
  for (const Entry& entry : entries) {
    if (table.struct_size < entry.offset + entry_size) {
      beyond.push_back(entry.name);
      continue;
    }
    void (*function)() = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(&table) + entry.offset, sizeof function);
    if (function == nullptr) holes.push_back(entry.name);
  }
  if (!beyond.empty()) {
    return fmt::format("its table has {} bytes, {} are needed: {} lie beyond it", table.struct_size, sizeof(quire_backend_table), fmt::join(beyond, ", "));
  }
  if (!holes.empty()) return fmt::format("its table has no {}", fmt::join(holes, ", no "));
  return {};
}

std::string words_of(const VersionRange& versions) {
  return versions.least == versions.most ? fmt::format("version {}", versions.most) : fmt::format("versions {} to {}", versions.least, versions.most);
}

std::string version_fault(const quire_backend_table& table, const VersionRange& versions) {
  if (table.abi_version >= versions.least && table.abi_version <= versions.most) return {};
  return fmt::format("too {}: it speaks version {} of the ABI; this library speaks {}", table.abi_version < versions.least ? "old" : "new", table.abi_version,
                     words_of(versions));
}

std::string semantics_fault(const quire_backend_table& table) {
  if (table.semantics_version == QUIRE_SEMANTICS_VERSION) return {};
  return fmt::format("it computes version {} of the laws; this library has version {}", table.semantics_version, QUIRE_SEMANTICS_VERSION);
}

bool is_backend_name(std::string_view name) {
  return !name.empty() && name.size() <= 32 &&
         std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
}

std::string info_fault(const quire_backend_info& info) {
  if (info.name == nullptr) return "describe gives no name";
  if (!is_backend_name(info.name)) {
    return fmt::format("its name is \"{}\"; allowed: 1 to 32 of a-z, 0-9, - and _", std::string_view(info.name).substr(0, 64));
  }
  if (info.version == nullptr) return "describe gives no version";
  if (info.description == nullptr) return "describe gives no description";
  constexpr std::uint64_t known = (std::uint64_t{1} << QUIRE_DTYPE_COUNT) - 1;
  const std::pair<std::string_view, std::uint64_t> sets[] = {{"dtypes", info.dtypes}, {"float_dtypes", info.float_dtypes}, {"state_dtypes", info.state_dtypes}};
  for (const auto& [what, bits] : sets) {
    if ((bits & ~known) != 0) return fmt::format("{} is {:#x}; allowed: bits 0 to {}", what, bits, QUIRE_DTYPE_COUNT - 1);
  }
  return {};
}

std::string device_fault(const quire_device_info& info) {
  if (info.name == nullptr) return "device_info gives no name";
  if (info.device.type <= 0 || info.device.id < 0) {
    return fmt::format("device_info gives type {}, number {}; allowed: types from 1, numbers from 0", info.device.type, info.device.id);
  }
  if (info.memory_bytes < 0) return fmt::format("device_info gives {} bytes of memory", info.memory_bytes);
  if (info.reads_host != 0 && info.reads_host != 1) return fmt::format("device_info gives reads_host {}; allowed: 0, 1", info.reads_host);
  return {};
}

}  // namespace quire::detail
