// Kernels with and without faults that only a sanitizer sees, for planted_test.cpp to run in a process of their own: the sanitizer ends it.
// Also: "settings" asks every function of the runtime, for the environment's bad settings.
// Usage: simt_planted <name> [<warp width> [<order>]]. Prints "line N", where the fault of that name stands, then runs it.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "../../gpu/dialect.h"
#include "../../gpu/runtime.h"
#include "../launch.h"

namespace quire::gpu {
namespace {

// Lines count here.
// clang-format off
struct Parameters {
  float* out;
  std::int64_t count;
};

constexpr int load_past_shared_line = __LINE__ + 4;
QUIRE_KERNEL(load_past_shared, Parameters) {
  const float* const shared = shared_memory<float>();
  barrier();
  if (thread() == 40) parameters.out[0] = shared[parameters.count];
}

constexpr int store_past_shared_line = __LINE__ + 4;
QUIRE_KERNEL(store_past_shared, Parameters) {
  auto* const shared = shared_memory<unsigned char>();
  warp_sum(1.0F);
  if (thread() == 40) shared[parameters.count] = 0;
  barrier();
}

constexpr int store_past_memory_line = __LINE__ + 3;
QUIRE_KERNEL(store_past_memory, Parameters) {
  barrier();
  if (thread() == 40) parameters.out[parameters.count] = 1.0F;
}

constexpr int array_end_line = __LINE__ + 6;
QUIRE_KERNEL(array_end, Parameters) {
  float own[4] = {0, 1, 2, 3};
  barrier();
  float* volatile at = own;
  const std::int64_t i = parameters.count;
  parameters.out[0] = at[i];
}

constexpr int missing_barrier_line = __LINE__ + 4;
QUIRE_KERNEL(missing_barrier, Parameters) {
  float* const shared = shared_memory<float>();
  shared[thread()] = 1.0F;
  parameters.out[block() * threads() + thread()] = shared[(thread() + 1) % threads()];
}

// What is read before the barrier is written after it by another thread, which then goes around once more without a barrier.
constexpr int missing_second_barrier_line = __LINE__ + 5;
QUIRE_KERNEL(missing_second_barrier, Parameters) {
  float* const shared = shared_memory<float>();
  float value = static_cast<float>(thread());
  for (std::int64_t i = 0; i < parameters.count; ++i) {
    shared[thread()] = value;
    barrier();
    value = shared[(thread() + 1) % threads()];
  }
  parameters.out[block() * threads() + thread()] = value;
}

// A warp's operation exchanges values; it is no barrier.
constexpr int sum_as_barrier_line = __LINE__ + 5;
QUIRE_KERNEL(sum_as_barrier, Parameters) {
  float* const shared = shared_memory<float>();
  shared[thread()] = 1.0F;
  const float sum = warp_sum(1.0F);
  parameters.out[block() * threads() + thread()] = sum + shared[thread() ^ 1];
}

constexpr int between_blocks_line = __LINE__ + 2;
QUIRE_KERNEL(between_blocks, Parameters) {
  if (thread() == 0) parameters.out[0] = static_cast<float>(block());
}

QUIRE_KERNEL(clean, Parameters) {
  float* const shared = shared_memory<float>();
  float value = static_cast<float>(thread());
  for (std::int64_t i = 0; i < parameters.count; ++i) {
    shared[thread()] = value;
    barrier();
    value = shared[(thread() + 1) % threads()] + warp_max(value);
    value = warp_shuffle(value, warp_lane() ^ 1) + warp_sum(value);
    if (block_any(value > 1e6F)) value = 1.0F;
  }
  parameters.out[block() * threads() + thread()] = value;
  store_racing(parameters.out + blocks() * threads(), value);
}

// clang-format on
struct Planted {
  std::string_view name;
  Kernel kernel;
  int line;
  std::int64_t shared_bytes;
  std::int64_t count;
};

int run(const Planted& planted, const simt::Settings& settings) {
  std::printf("line %d\n", planted.line);
  std::fflush(stdout);
  constexpr std::int64_t blocks = 5;
  constexpr int threads = 128;
  // One float more than a block's threads write, for the racing store.
  const std::size_t floats = blocks * threads + 1;
  auto* const out = static_cast<float*>(runtime::allocate(0, nullptr, floats * sizeof(float)));
  const std::int64_t count = planted.count < 0 ? static_cast<std::int64_t>(floats) : planted.count;
  for (int round = 0; round < 3; ++round) {
    simt::run(settings, Launch::of(planted.kernel, blocks, threads, planted.shared_bytes, Parameters{out, count}));
    // The host sees what the kernels wrote: no race with them.
    for (std::size_t i = 0; i < floats; ++i) out[i] += 1.0F;
  }
  runtime::release(0, nullptr, out);
  std::printf("done\n");
  return 0;
}

/// What each function of the runtime answers, a line each.
int ask_all() {
  const auto tell = [](const char* function, const auto& call) {
    try {
      call();
      std::printf("%s: done\n", function);
    } catch (const Failure& failure) {
      std::printf("%s: %d: %s\n", function, failure.status, failure.message.c_str());
    }
  };
  constexpr quire_device host{QUIRE_DEVICE_CPU, 0};
  const Launch launch = Launch::of(clean(), 0, 64, 0, Parameters{nullptr, 0});
  std::printf("%s, %d, %d\n", runtime::description(), runtime::rank(), runtime::device_type());
  tell("device_count", [] { runtime::device_count(); });
  tell("limits", [] { runtime::limits(0); });
  tell("allocate", [] { runtime::release(0, nullptr, runtime::allocate(0, nullptr, 16)); });
  tell("release", [] { runtime::release(0, nullptr, nullptr); });
  tell("copy", [&] { runtime::copy(nullptr, nullptr, host, nullptr, host, 0); });
  tell("stream_create", [] { runtime::stream_destroy(runtime::stream_create(0)); });
  tell("event_create", [] { runtime::event_destroy(runtime::event_create(0)); });
  tell("launch", [&] { runtime::launch(0, nullptr, {&launch, 1}); });
  tell("graph_create", [&] { runtime::graph_destroy(runtime::graph_create(0, {&launch, 1})); });
  return 0;
}

}  // namespace
}  // namespace quire::gpu

int main(int argc, char** argv) {
  using namespace quire::gpu;
  if (argc == 2 && std::string_view(argv[1]) == "settings") return ask_all();
  const Planted all[] = {
      {"load_past_shared", load_past_shared(), load_past_shared_line, 1024, 256},
      {"store_past_shared", store_past_shared(), store_past_shared_line, 1001, 1001},
      {"store_past_memory", store_past_memory(), store_past_memory_line, 0, -1},
      {"array_end", array_end(), array_end_line, 0, 4},
      {"missing_barrier", missing_barrier(), missing_barrier_line, 512, 0},
      {"missing_second_barrier", missing_second_barrier(), missing_second_barrier_line, 512, 3},
      {"sum_as_barrier", sum_as_barrier(), sum_as_barrier_line, 512, 0},
      {"between_blocks", between_blocks(), between_blocks_line, 0, 0},
      {"clean", clean(), 0, 512, 4},
  };
  quire::simt::Settings settings;
  settings.workers = 2;
  if (argc > 2) settings.warp_width = std::atoi(argv[2]);
  if (argc > 3) {
    const std::string_view order = argv[3];
    settings.order = order == "random"   ? quire::simt::Order::random
                     : order == "greedy" ? quire::simt::Order::greedy
                                         : quire::simt::Order::in_order;
  }
  for (const Planted& planted : all) {
    if (argc < 2 || planted.name != argv[1]) continue;
    try {
      return run(planted, settings);
    } catch (const Failure& failure) {
      std::printf("%s\n", failure.message.c_str());
      return 3;
    }
  }
  std::fprintf(stderr, "simt_planted: a name, of:");
  for (const Planted& planted : all) std::fprintf(stderr, " %.*s", static_cast<int>(planted.name.size()), planted.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}
