// Planted faults, each told by kind, kernel, block, threads and line.
#include <array>
#include <atomic>
#include <cmath>

#include "simt_test_helpers.h"

// Lines count here.
// clang-format off
namespace quire::gpu {
namespace {

struct Parameters {
  float* out;
  std::int64_t bad_block;  ///< the fault is in this one
};

#if !defined(__SANITIZE_THREAD__)
// Right only where all threads of the block reach the sum before any goes on, as in order they do: the barrier before the read is missing.
QUIRE_KERNEL(missing_barrier, Parameters) {
  float* const shared = shared_memory<float>();
  shared[thread()] = static_cast<float>(thread());
  const float of_warp = warp_sum(1.0F);
  parameters.out[thread()] = shared[threads() - 1 - thread()] + of_warp;
}
#endif

constexpr unsigned divergent_line = __LINE__ + 4;
QUIRE_KERNEL(divergent, Parameters) {
  const bool bad = block() == parameters.bad_block;
  if (bad && thread() >= 32) {
    barrier();
  } else {
    block_any(true);
  }
}

// The same function called at two places is two barriers too.
constexpr unsigned two_places_line = __LINE__ + 3;
QUIRE_KERNEL(two_places, Parameters) {
  if (block() == parameters.bad_block && thread() % 2 == 1)
    barrier();
  else
    barrier();
}

constexpr unsigned skipped_line = __LINE__ + 2;
QUIRE_KERNEL(skipped, Parameters) {
  if (thread() != 77 || block() != parameters.bad_block) barrier();
  store_racing(parameters.out, 1.0F);
}

constexpr unsigned early_return_line = __LINE__ + 3;
QUIRE_KERNEL(early_return, Parameters) {
  if (block() == parameters.bad_block && thread() >= 100) return;
  for (int i = 0; i < 3; ++i) barrier();
}

constexpr unsigned half_warp_line = __LINE__ + 2;
QUIRE_KERNEL(half_warp, Parameters) {
  if (block() != parameters.bad_block || warp_lane() < 16) parameters.out[block() * threads() + thread()] = warp_sum(1.0F);
}

constexpr unsigned deadlock_line = __LINE__ + 3;
QUIRE_KERNEL(deadlock, Parameters) {
  if (block() == parameters.bad_block && thread() >= 64 && thread() < 80)
    parameters.out[block() * threads() + thread()] = warp_max(1.0F);
  barrier();
}

constexpr unsigned two_operations_line = __LINE__ + 3;
QUIRE_KERNEL(two_operations, Parameters) {
  if (block() == parameters.bad_block && warp_lane() == 3)
    parameters.out[block() * threads() + thread()] = warp_max(1.0F);
  else
    parameters.out[block() * threads() + thread()] = warp_sum(1.0F);
}

constexpr unsigned lane_line = __LINE__ + 2;
QUIRE_KERNEL(lane_outside, Parameters) {
  parameters.out[block() * threads() + thread()] = warp_shuffle(1.0F, block() == parameters.bad_block && thread() == 65 ? warp_width() : 0);
}

#if !defined(__SANITIZE_ADDRESS__)
struct StoreParameters {
  std::int64_t byte;
};
QUIRE_KERNEL(store_at, StoreParameters) {
  if (block() == 1 && thread() == 3) {
    unsigned char* const shared = shared_memory<unsigned char>();
    shared[parameters.byte] = 0;
  }
  barrier();
}
#endif

QUIRE_KERNEL(throws, Parameters) {
  barrier();
  if (thread() == 5) throw 1;
  barrier();
}

QUIRE_KERNEL(clean, Parameters) {
  float* const shared = shared_memory<float>();
  shared[thread()] = static_cast<float>(thread());
  barrier();
  parameters.out[block() * threads() + thread()] = shared[threads() - 1 - thread()];
}

struct CountParameters {
  std::int64_t* ran;
};
QUIRE_KERNEL(faulty_everywhere, CountParameters) {
  if (thread() == 0) __atomic_fetch_add(parameters.ran, 1, __ATOMIC_RELAXED);
  if (thread() % 2 == 0) barrier();
}

}  // namespace
}  // namespace quire::gpu
// clang-format on

namespace quire::simt::test {
namespace {

std::string here(unsigned line) { return fmt::format("fault_test.cpp:{}", line); }

std::string fault(const Settings& settings, const Kernel& kernel, std::int64_t bad_block) {
  std::vector<float> out(4 * 256);
  return fault_of(settings, kernel, 4, 256, 1024, gpu::Parameters{out.data(), bad_block});
}

/// The fault in block 2 has these parts in its text, under every setting; without it there is none.
void check_fault(const Kernel& kernel, const std::vector<std::string>& parts) {
  under_every_setting([&](const Settings& settings) {
    CHECK(fault(settings, kernel, -1) == "");
    const std::string text = fault(settings, kernel, 2);
    INFO(text);
    CHECK(has_in_order(text, parts));
  });
}

// The thread sanitizer finds it in any order: planted_test.cpp.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("planted: a missing barrier changes bits in the greedy order") {
  for (const int width : every_width) {
    std::array<std::vector<float>, 2> outs;
    for (int greedy = 0; greedy < 2; ++greedy) {
      outs[static_cast<std::size_t>(greedy)].resize(256);
      const Settings settings = settings_of(width, greedy == 1 ? Order::greedy : Order::in_order);
      CHECK(fault_of(settings, gpu::missing_barrier(), 1, 256, 1024, gpu::Parameters{outs[static_cast<std::size_t>(greedy)].data(), 0}) ==
            "");
    }
    for (std::size_t i = 0; i < 256; ++i) CHECK(outs[0][i] == static_cast<float>(255 - i) + static_cast<float>(width));
    // The first warp read what nobody had written.
    for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) CHECK(std::isnan(outs[1][i]));
  }
}
#endif

TEST_CASE("planted: a divergent barrier, of two kinds") {
  check_fault(gpu::divergent(), {"kernel divergent, block 2: divergent barrier: threads 0-31 wait in block_any at ",
                                 here(gpu::divergent_line + 2), "threads 32-255 wait in barrier at ", here(gpu::divergent_line)});
}

TEST_CASE("planted: a divergent barrier, called at two places") {
  check_fault(gpu::two_places(),
              {"kernel two_places, block 2: divergent barrier: threads 0,2,4,6,8,10,12,14,... wait in barrier at ",
               here(gpu::two_places_line + 2), "threads 1,3,5,7,9,11,13,15,... wait in barrier at ", here(gpu::two_places_line)});
}

TEST_CASE("planted: a thread that skips a barrier") {
  check_fault(gpu::skipped(), {"kernel skipped, block 2: divergent barrier, a deadlock: threads 0-76,78-255 wait in barrier at ",
                               here(gpu::skipped_line), "; thread 77 has ended"});
}

TEST_CASE("planted: threads that return before a barrier") {
  check_fault(gpu::early_return(), {"kernel early_return, block 2: divergent barrier, a deadlock: threads 0-99 wait in barrier at ",
                                    here(gpu::early_return_line), "; threads 100-255 have ended"});
}

TEST_CASE("planted: a warp operation by half a warp") {
  for (const int width : every_width) {
    for (const Order order : every_order) {
      const std::string text = fault(settings_of(width, order), gpu::half_warp(), 2);
      INFO(text);
      CHECK(has_in_order(text, {"kernel half_warp, block 2: deadlock: warp_sum at ", here(gpu::half_warp_line),
                                " reached by a part of warp 0: threads 0-15 wait in", here(gpu::half_warp_line),
                                width == 32 ? "; threads 16-31 have ended" : "; threads 16-63 have ended"}));
    }
  }
  check_fault(gpu::half_warp(), {"block 2: deadlock"});
}

TEST_CASE("planted: a deadlock of a warp operation and a barrier") {
  check_fault(gpu::deadlock(), {"kernel deadlock, block 2: deadlock: warp_max at ", here(gpu::deadlock_line), " reached by a part of warp ",
                                "threads 64-79 wait in warp_max", "wait in barrier at ", here(gpu::deadlock_line + 1)});
}

TEST_CASE("planted: a warp at two operations") {
  check_fault(gpu::two_operations(), {"kernel two_operations, block 2: divergent operation of warp ", " wait in warp_sum at ",
                                      here(gpu::two_operations_line + 2), " waits in warp_max at ", here(gpu::two_operations_line)});
}

TEST_CASE("planted: a shuffle from a lane that the warp has not") {
  check_fault(gpu::lane_outside(),
              {"kernel lane_outside, block 2: warp_shuffle at ", here(gpu::lane_line), ", thread 65: lane ", "; allowed: 0 to "});
}

TEST_CASE("planted: an exception") { CHECK(fault(Settings{}, gpu::throws(), 0) == "kernel throws, block 0: thread 5 threw an exception"); }

// The address sanitizer ends the process instead: planted_test.cpp.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("planted: a store beside shared memory") {
  under_every_setting([](const Settings& settings) {
    for (const std::int64_t byte : {1000, 1063, -1, -64}) {
      if (thread_sanitizer_build && byte != 1000) continue;
      const std::string text = fault_of(settings, gpu::store_at(), 3, 64, 1000, gpu::StoreParameters{byte});
      CHECK(text == fmt::format("kernel store_at, block 1: a store to byte {} of its shared memory, which has 1000", byte));
    }
    for (const std::int64_t byte : {0, 999}) CHECK(fault_of(settings, gpu::store_at(), 3, 64, 1000, gpu::StoreParameters{byte}) == "");
  });
}
#endif

TEST_CASE("after a fault the emulator goes on as before") {
  under_every_setting([](const Settings& settings) {
    for (int round = 0; round < (thread_sanitizer_build ? 1 : 3); ++round) {
      CHECK(fault(settings, gpu::early_return(), 1) != "");
      CHECK(fault(settings, gpu::two_operations(), 0) != "");
      std::vector<float> out(256 * 9);
      CHECK(fault_of(settings, gpu::clean(), 9, 256, 1024, gpu::Parameters{out.data(), 0}) == "");
      for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == static_cast<float>(255 - i % 256));
    }
  });
}

TEST_CASE("the first fault ends the launch") {
  std::int64_t ran = 0;
  Settings settings;
  settings.workers = 1;
  const std::string text = fault_of(settings, gpu::faulty_everywhere(), 1000, 64, 0, gpu::CountParameters{&ran});
  CHECK(text.find("kernel faulty_everywhere, block 0: ") == 0);
  CHECK(ran == 1);
}

TEST_CASE("launches that no GPU would take") {
  const auto rejected = [](std::int64_t blocks, int threads, std::int64_t shared_bytes) {
    return fault_of(Settings{}, gpu::clean(), blocks, threads, shared_bytes, gpu::Parameters{nullptr, 0});
  };
  CHECK(rejected(-1, 64, 0) == "kernel clean: blocks: -1; allowed: 0 or more");
  CHECK(rejected(1, 0, 0) == "kernel clean: threads: 0; allowed: multiples of 64 to 256");
  CHECK(rejected(1, 96, 0) == "kernel clean: threads: 96; allowed: multiples of 64 to 256");
  CHECK(rejected(1, 320, 0) == "kernel clean: threads: 320; allowed: multiples of 64 to 256");
  CHECK(rejected(1, 64, 49153) == "kernel clean: shared_bytes: 49153; allowed: 0 to 49152");
  CHECK(rejected(1, 64, -1) == "kernel clean: shared_bytes: -1; allowed: 0 to 49152");
  CHECK(rejected(0, 64, 0) == "");
}

}  // namespace
}  // namespace quire::simt::test
