// What needs a process of its own: bad settings, and in a sanitizer's build that it reports the faults of planted.cpp at their line, and
// nothing of clean kernels.
#include <array>
#include <cstdio>

#include "simt_test_helpers.h"

namespace quire::simt::test {
namespace {

struct Outcome {
  std::string text;
  int status = 0;
  int line = 0;
};

Outcome run_planted(const std::string& arguments, const std::string& variable = "") {
  Outcome outcome;
  FILE* const pipe = popen((variable + " " + QUIRE_SIMT_PLANTED + " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.text.append(buffer.data(), bytes);
  outcome.status = pclose(pipe);
  if (std::sscanf(outcome.text.c_str(), "line %d", &outcome.line) != 1) outcome.line = -1;
  return outcome;
}

TEST_CASE("a bad setting fails every call, with its words") {
  const std::pair<const char*, const char*> bad[] = {
      {"QUIRE_SIMT_WARP=16", "QUIRE_SIMT_WARP: \"16\"; allowed: 32, 64"},
      {"QUIRE_SIMT_ORDER=reverse", "QUIRE_SIMT_ORDER: \"reverse\"; allowed: in-order, random, greedy"},
      {"QUIRE_SIMT_DEVICES=0", "QUIRE_SIMT_DEVICES: \"0\"; allowed: 1 to 16"},
  };
  for (const auto& [variable, message] : bad) {
    const Outcome outcome = run_planted("settings", variable);
    INFO(outcome.text);
    CHECK(outcome.status == 0);
    std::string expected = fmt::format("SIMT emulator on the processor: {}, -1, 12\n", message);
    for (const char* const function :
         {"device_count", "limits", "allocate", "release", "copy", "stream_create", "event_create", "launch", "graph_create"})
      expected += fmt::format("{}: {}: {}\n", function, static_cast<int>(QUIRE_UNAVAILABLE), message);
    CHECK(outcome.text == expected);
  }
  const Outcome outcome = run_planted("settings", "QUIRE_SIMT_WARP=64");
  CHECK(has_in_order(outcome.text, {"warps of 64", "device_count: done", "launch: done", "graph_create: done"}));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#if defined(__SANITIZE_THREAD__)
constexpr const char* planted_settings[] = {" 32 in-order", " 64 greedy"};
#else
constexpr const char* planted_settings[] = {" 32 in-order", " 64 in-order", " 32 greedy", " 64 random"};
#endif

void check_reported(const std::string& name, const std::string& what) {
  for (const char* const setting : planted_settings) {
    const Outcome outcome = run_planted(name + setting);
    INFO(name, setting, "\n", outcome.text);
    CHECK(outcome.status != 0);
    CHECK(has_in_order(outcome.text, {what, fmt::format("planted.cpp:{}", outcome.line)}));
  }
}

void check_clean(const std::string& name) {
  for (const char* const setting : planted_settings) {
    const Outcome outcome = run_planted(name + setting);
    INFO(name, setting, "\n", outcome.text);
    CHECK(outcome.status == 0);
    CHECK(outcome.text == fmt::format("line {}\ndone\n", outcome.line));
  }
}

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("the address sanitizer reports loads and stores past shared memory, device memory and a thread's arrays, at their line") {
  check_reported("load_past_shared", "AddressSanitizer: heap-buffer-overflow");
  check_reported("store_past_shared", "AddressSanitizer: heap-buffer-overflow");
  check_reported("store_past_memory", "AddressSanitizer: heap-buffer-overflow");
  check_reported("array_end", "AddressSanitizer: stack-buffer-overflow");
  check_clean("clean");
}
#else
TEST_CASE("the thread sanitizer reports missing barriers and races between blocks at their line, and nothing of clean kernels") {
  check_reported("missing_barrier", "ThreadSanitizer: data race");
  check_reported("missing_second_barrier", "ThreadSanitizer: data race");
  check_reported("sum_as_barrier", "ThreadSanitizer: data race");
  check_reported("between_blocks", "ThreadSanitizer: data race");
  check_clean("clean");
}
#endif
#endif

}  // namespace
}  // namespace quire::simt::test
