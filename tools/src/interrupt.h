// Ctrl-C: a flag that long work looks at between its steps.
#pragma once

namespace quire::tools {

/// From now on the first interrupt sets the flag; a second one ends the process at once.
void watch_interrupts();
bool interrupted();

/// The shell's exit status for a command that an interrupt ended.
inline constexpr int interrupted_exit = 130;

}  // namespace quire::tools
