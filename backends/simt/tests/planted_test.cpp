// In a sanitizer's build: it reports the faults of planted.cpp at their line, and nothing of clean kernels.
#include "simt_test_helpers.h"

#include <array>
#include <cstdio>

namespace quire::simt::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

struct Outcome {
  std::string text;
  int status = 0;
  int line = 0;
};

Outcome run_planted(const std::string& arguments) {
  Outcome outcome;
  FILE* const pipe = popen((std::string(QUIRE_SIMT_PLANTED) + " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.text.append(buffer.data(), bytes);
  outcome.status = pclose(pipe);
  if (std::sscanf(outcome.text.c_str(), "line %d", &outcome.line) != 1) outcome.line = -1;
  return outcome;
}

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
