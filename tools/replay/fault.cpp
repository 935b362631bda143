// The faults' names.
#include "fault.h"

#include <quire/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace quire::replay {

const std::vector<std::string_view>& fault_names() {
  static const std::vector<std::string_view> names = {"stale", "share", "boundary", "reject", "window", "evict"};
  return names;
}

Fault fault_named(std::string_view name) {
  if (name.empty()) return Fault::none;
  const auto& names = fault_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) reject("--fault", fmt::format("\"{}\"", printable(name)), fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<Fault>(1 + (found - names.begin()));
}

std::string_view name(Fault fault) { return fault == Fault::none ? "" : fault_names()[static_cast<std::size_t>(fault) - 1]; }

}  // namespace quire::replay
