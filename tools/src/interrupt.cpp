// Ctrl-C as a flag.
#include "interrupt.h"

#include <csignal>

namespace quire::tools {

namespace {

volatile std::sig_atomic_t flag = 0;

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { flag = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace quire::tools
