// Runs many small helper processes at once, each with a time limit, and keeps what they say.
#include "helper_runs.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

extern char** environ;

namespace quire::detail {

namespace {

using Clock = std::chrono::steady_clock;

// What a helper may say; more is dropped.
constexpr std::size_t most_findings = std::size_t{1} << 22;
constexpr std::size_t most_said = std::size_t{1} << 16;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read, write;
};

// Above the descriptors that the child is given, so that none of them is overwritten while they are set up.
std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor low_read(ends[0]), low_write(ends[1]);
  Pipe pipe{Descriptor(::fcntl(ends[0], F_DUPFD_CLOEXEC, 10)), Descriptor(::fcntl(ends[1], F_DUPFD_CLOEXEC, 10))};
  if (pipe.read.get() < 0 || pipe.write.get() < 0) return std::nullopt;
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

// What is there now, or a part of it where the writer never stops. Closes at the end.
void drain(Descriptor& from, std::string& to, std::size_t most) {
  char buffer[4096];
  for (int turn = 0; turn < 256 && from.get() >= 0; ++turn) {
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got > 0) {
      to.append(buffer, static_cast<std::size_t>(got));
      if (to.size() > most) to.erase(0, to.size() - most);
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) from.close();
      return;
    }
  }
}

// A sanitizer's headline stands far above its last line.
std::string telling_line(std::string_view text) {
  std::string last;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    last = line;
    if (line.find("Sanitizer: ") != std::string_view::npos && line.find("==") != std::string_view::npos) break;
  }
  return last;
}

class Helper {
 public:
  Helper(const std::vector<std::string>& command, double seconds, HelperRun& run) : run_(run) {
    start(command);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    if (ended()) return;
    ::kill(-process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  bool ended() const { return process_ < 0; }
  void descriptors(std::vector<pollfd>& to) const {
    for (const Descriptor* d : {&findings_, &said_}) {
      if (!ended() && d->get() >= 0) to.push_back({d->get(), POLLIN, 0});
    }
  }

  // Reads what is there, and looks whether it has ended or must end.
  void look() {
    if (ended()) return;
    read();
    siginfo_t facts{};
    // Left as a zombie for now: its group's number stays its own.
    const int answer = ::waitid(P_PID, static_cast<id_t>(process_), &facts, WEXITED | WNOHANG | WNOWAIT);
    if (answer != 0 && errno == EINTR) return;
    const bool gone = answer != 0;  // somebody else has waited for it, or children are not kept (SIGCHLD ignored)
    if (!gone && facts.si_pid == 0) {
      if (Clock::now() < deadline_) return;
      run_.end = HelperRun::End::timed_out;
    }
    if (!gone) ::kill(-process_, SIGKILL);
    int status = 0;
    pid_t waited = -1;
    while (!gone && (waited = ::waitpid(process_, &status, 0)) < 0 && errno == EINTR) {
    }
    read();
    if (waited != process_) {
      run_.end = HelperRun::End::unknown;
    } else if (run_.end != HelperRun::End::timed_out) {
      run_.end = WIFSIGNALED(status) ? HelperRun::End::signalled : HelperRun::End::exited;
      run_.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    }
    run_.said = telling_line(errors_);
    process_ = -1;
    findings_.close();
    said_.close();
  }

 private:
  void read() {
    drain(findings_, run_.findings, most_findings);
    drain(said_, errors_, most_said);
  }

  void start(const std::vector<std::string>& command) {
    std::optional<Pipe> findings = make_pipe(), said = make_pipe();
    if (!findings || !said) {
      run_.number = errno;
      return;
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, said->write.get(), 2);
    ::posix_spawn_file_actions_adddup2(&actions, findings->write.get(), 3);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 4);
#endif
    // The host's own signal settings are not the helper's.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t process = -1;
    run_.number = ::posix_spawn(&process, arguments[0], &actions, &attributes, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (run_.number != 0) return;
    process_ = process;
    findings_ = std::move(findings->read);
    said_ = std::move(said->read);
  }

  HelperRun& run_;
  pid_t process_ = -1;
  Clock::time_point deadline_;
  Descriptor findings_, said_;
  std::string errors_;
};

}  // namespace

std::vector<HelperRun> run_helpers(const std::vector<std::vector<std::string>>& commands, double seconds, std::size_t at_once) {
  std::vector<HelperRun> runs(commands.size());
  std::deque<Helper> running;
  std::size_t next = 0, ended = 0;
  while (ended < commands.size()) {
    while (next < commands.size() && next - ended < at_once) {
      running.emplace_back(commands[next], seconds, runs[next]);
      ++next;
      if (running.back().ended()) ++ended;
    }
    std::vector<pollfd> descriptors;
    for (const Helper& helper : running) helper.descriptors(descriptors);
    // A helper's end closes its pipes, unless a process that it started holds them: then it is seen a few milliseconds later.
    if (!descriptors.empty()) {
      ::poll(descriptors.data(), descriptors.size(), 5);
    } else if (ended < next) {
      ::poll(nullptr, 0, 1);
    }
    for (Helper& helper : running) {
      if (helper.ended()) continue;
      helper.look();
      if (helper.ended()) ++ended;
    }
  }
  return runs;
}

}  // namespace quire::detail
