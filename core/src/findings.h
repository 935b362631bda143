// What quire-probe tells of a plugin, as lines "key value" on a pipe. Part of the library, which reads them, and of quire-probe, which writes.
#pragma once

#include <quire/backend_status.h>

#include <string>
#include <string_view>

namespace quire::detail {

/// Any text as part of one line.
std::string as_word(std::string_view text);

/// All of `status` that a probe finds out, with the closing line.
std::string write_findings(const BackendStatus& status);

struct ReadFindings {
  bool complete = false;  ///< the closing line was there
  std::string stage;      ///< what the probe had begun last
};
/// Lines that say nothing known are passed over: `complete` alone says that the probe came to its end.
ReadFindings read_findings(std::string_view text, BackendStatus& status);

}  // namespace quire::detail
