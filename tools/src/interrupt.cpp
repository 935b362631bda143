// Ctrl-C as a flag.
#include "interrupt.h"

#include <atomic>
#include <csignal>

namespace quire::tools {

namespace {

// Any thread may take the signal, and any may look.
std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { flag = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag; }

}  // namespace quire::tools
