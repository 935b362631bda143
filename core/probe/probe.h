// Loads a plugin and asks it all that the library goes by.
#pragma once

#include <quire/backend_status.h>

#include <functional>
#include <string>
#include <string_view>

namespace quire {

/// `begin` hears of every stage before it begins, so that a crash can be told by it.
BackendStatus probe(const std::string& path, const VersionRange& versions, const std::function<void(std::string_view)>& begin);

}  // namespace quire
