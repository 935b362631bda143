// Why the loader refuses a plugin: which libraries and symbols are not there, all of them.
#pragma once

#include "elf_file.h"

#include <quire/backend_status.h>

#include <string>

namespace quire {

/// Fills `missing` and `unresolved`, the fault and the reason; `words` is what the loader said. Loads what the plugin needs.
void explain_refusal(const std::string& path, const detail::ElfFacts& facts, const std::string& words, BackendStatus& status);

}  // namespace quire
