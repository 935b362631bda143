// quire-probe FILE MIN MAX: tries a backend plugin in a process of its own, so that one that crashes or hangs is found out here.
//
// The library starts it, with a pipe as file descriptor 3; started by hand it prints its findings on standard output. Exit status: 0 where
// it came to an end, whatever it found; 2 for arguments that can't be used.
#include "probe.h"

#include "findings.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

// A sanitized probe leaves signals as they are: what a crash is called does not depend on the build.
extern "C" const char* __asan_default_options() { return "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0"; }
extern "C" const char* __tsan_default_options() { return "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0"; }

namespace {

bool number(const char* text, std::uint32_t& value) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end;
}

void put(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(pipe, text.data(), text.size());
    if (written <= 0) ::_exit(2);  // nobody reads
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

int main(int argc, char** argv) {
  quire::VersionRange versions;
  if (argc != 4 || !number(argv[2], versions.least) || !number(argv[3], versions.most) || versions.least > versions.most) {
    std::fputs("quire-probe: FILE MIN MAX wanted: a plugin and the range of ABI versions to ask it for\n", stderr);
    return 2;
  }
  // Whoever waits for the findings is gone, nobody ends a plugin that hangs.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Out of the way of a plugin that writes to or closes the first few, and not its children's.
  const bool asked = ::fcntl(3, F_GETFD) != -1;
  const int pipe = ::fcntl(asked ? 3 : 1, F_DUPFD_CLOEXEC, 200);
  if (asked) ::close(3);
  if (pipe < 0) return 2;
  try {
    const quire::BackendStatus status =
        quire::probe(argv[1], versions, [pipe](std::string_view stage) { put(pipe, "stage " + quire::detail::as_word(stage) + "\n"); });
    put(pipe, quire::detail::write_findings(status));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);  // a plugin's destructors have no part in it
}
