// The reference's entry point: what a plugin exports as quire_backend_query.
#pragma once

#include <quire/backend.h>

namespace quire::reference {

const quire_backend_table* query(const quire_host* host, std::uint32_t min_version, std::uint32_t max_version, const char** reason);

}  // namespace quire::reference
