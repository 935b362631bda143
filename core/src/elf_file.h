// What a shared library's file says of itself before it is loaded. Reads hostile files: every offset is checked.
#pragma once

#include <quire/backend_status.h>

#include <span>
#include <string>
#include <vector>

namespace quire::detail {

struct ElfFacts {
  PluginFault fault = PluginFault::none;
  std::string reason;                   ///< what is wrong, where something is
  std::vector<std::string> needed;      ///< DT_NEEDED
  std::string run_path;                 ///< DT_RUNPATH, else DT_RPATH
  std::vector<std::string> undefined;   ///< symbols that it uses and must find, weak ones apart
};

ElfFacts read_elf(std::span<const unsigned char> file);

}  // namespace quire::detail
