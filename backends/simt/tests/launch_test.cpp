// Grids: limits, 64-bit block numbers, many workers and many callers at once; the orders; the settings.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "../block.h"
#include "simt_test_helpers.h"

namespace quire::gpu {
namespace {

struct GridParameters {
  std::int64_t work;
  std::int64_t* done;       ///< [work], times each piece was done
  std::int64_t* most_seen;  ///< blocks()
};
QUIRE_KERNEL(grid_loop, GridParameters) {
  for (std::int64_t i = block(); i < parameters.work; i += blocks()) {
    if (thread() == 0) ++parameters.done[i];
    barrier();
  }
  if (thread() == 0) store_racing(parameters.most_seen, blocks());
}

struct NumberParameters {
  std::int64_t* out;
};
QUIRE_KERNEL(numbers, NumberParameters) {
  if (thread() == 0) {
    parameters.out[0] = block();
    parameters.out[1] = blocks();
    parameters.out[2] = block() * 256 + 255;
  }
}

struct OrderParameters {
  int* next;
  int* order;
  int rounds;
};
// The order in which threads come by, before and after a barrier.
QUIRE_KERNEL(order_of_threads, OrderParameters) {
  for (int round = 0; round < parameters.rounds; ++round) {
    parameters.order[__atomic_fetch_add(parameters.next, 1, __ATOMIC_RELAXED)] = thread();
    barrier();
  }
}
QUIRE_KERNEL(order_at_sums, OrderParameters) {
  for (int round = 0; round < parameters.rounds; ++round) {
    parameters.order[__atomic_fetch_add(parameters.next, 1, __ATOMIC_RELAXED)] = thread();
    warp_sum(0);
  }
}

struct ChurnParameters {
  const float* in;
  float* out;
  int rounds;
};
QUIRE_KERNEL(churn, ChurnParameters) {
  float* const shared = shared_memory<float>();
  float value = parameters.in[thread()];
  for (int round = 0; round < parameters.rounds; ++round) {
    shared[thread()] = value;
    barrier();
    value = shared[(thread() + 37) % threads()] + 0.5F * warp_sum(value);
    value /= 1.0F + warp_max(value < 0 ? -value : value);
    if (block_any(value > 100)) value = 0;
  }
  parameters.out[block() * threads() + thread()] = value;
}

}  // namespace
}  // namespace quire::gpu

namespace quire::simt::test {
namespace {

TEST_CASE("a grid is cut to its limit, and the kernels' loops do all the work") {
  for (const std::int64_t limit : {std::int64_t{1}, std::int64_t{3}, std::int64_t{7}, std::int64_t{100}, Settings::most_blocks}) {
    Settings settings = settings_of(32, Order::in_order);
    settings.grid = limit;
    std::vector<std::int64_t> done(50);
    std::int64_t most = 0;
    // A planner may ask for more blocks than there is work, and for more than any grid has.
    for (const std::int64_t blocks : {std::int64_t{50}, std::int64_t{60}, std::int64_t{1} << 40}) {
      if (blocks > 1000 && limit > 1000) continue;
      std::fill(done.begin(), done.end(), 0);
      run(settings, Launch::of(gpu::grid_loop(), blocks, 64, 0, gpu::GridParameters{50, done.data(), &most}));
      CHECK(done == std::vector<std::int64_t>(50, 1));
      CHECK(most == std::min(blocks, limit));
    }
  }
}

TEST_CASE("block numbers have 64 bits") {
  std::int64_t out[3] = {};
  const Launch launch = Launch::of(gpu::numbers(), std::int64_t{1} << 40, 64, 0, gpu::NumberParameters{out});
  Block block;
  const std::int64_t number = (std::int64_t{1} << 39) + 12345;
  block.begin(Settings{}, launch, launch.blocks);
  CHECK(block.run(number));
  block.end();
  CHECK(out[0] == 549755826233);
  CHECK(out[1] == 1099511627776);
  CHECK(out[2] == 140737491515903);
}

std::vector<int> order_seen(const Settings& settings, const Kernel& kernel, std::int64_t blocks = 1) {
  int next = 0;
  std::vector<int> order(static_cast<std::size_t>(256 * blocks));
  Settings alone = settings;
  alone.workers = 1;
  run(alone, Launch::of(kernel, blocks, 128, 0, gpu::OrderParameters{&next, order.data(), 2}));
  return order;
}

TEST_CASE("in order, threads come by their numbers; the greedy order finishes a warp first") {
  for (const int width : every_width) {
    const std::vector<int> at_barriers = order_seen(settings_of(width, Order::in_order), gpu::order_of_threads());
    const std::vector<int> at_sums = order_seen(settings_of(width, Order::in_order), gpu::order_at_sums());
    const std::vector<int> greedy_at_barriers = order_seen(settings_of(width, Order::greedy), gpu::order_of_threads());
    const std::vector<int> greedy = order_seen(settings_of(width, Order::greedy), gpu::order_at_sums());
    for (int i = 0; i < 256; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(at_barriers[at] == i % 128);
      CHECK(at_sums[at] == i % 128);
      CHECK(greedy_at_barriers[at] == i % 128);
      CHECK(greedy[at] == i / (2 * width) * width + i % width);
    }
  }
}

TEST_CASE("the random order is a permutation that its seed and the block choose") {
  const std::vector<int> first = order_seen(settings_of(32, Order::random, 1), gpu::order_of_threads());
  CHECK(first == order_seen(settings_of(32, Order::random, 1), gpu::order_of_threads()));
  CHECK(first != order_seen(settings_of(32, Order::random, 2), gpu::order_of_threads()));
  const auto half = [](const std::vector<int>& order, std::size_t begin) {
    return std::vector<int>(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(begin) + 128);
  };
  for (const std::size_t begin : {0, 128}) {
    const std::vector<int> round = half(first, begin);
    CHECK(std::set<int>(round.begin(), round.end()).size() == 128);
  }
  CHECK(half(first, 0) != half(first, 128));
  const std::vector<int> of_two_blocks = order_seen(settings_of(32, Order::random, 1), gpu::order_of_threads(), 2);
  CHECK(half(of_two_blocks, 0) == half(first, 0));
  CHECK(half(of_two_blocks, 0) != half(of_two_blocks, 256));
}

TEST_CASE("stress: many threads use the emulator at once, with workers of their own, and all get the same bits") {
  constexpr int blocks = thread_sanitizer_build ? 4 : 40;
  constexpr int callers_count = thread_sanitizer_build ? 3 : 8;
  constexpr int rounds = thread_sanitizer_build ? 2 : 6;
  std::vector<float> in(256);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = uneven(static_cast<std::int64_t>(i)) / 1e5F;
  std::map<int, std::vector<float>> expected;
  const auto launch = [&](std::vector<float>& out) {
    return Launch::of(gpu::churn(), blocks, 256, 1024, gpu::ChurnParameters{in.data(), out.data(), 6});
  };
  for (const int width : every_width) {
    expected[width].resize(256 * blocks);
    Settings alone = settings_of(width, Order::in_order);
    alone.workers = 1;
    run(alone, launch(expected[width]));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < callers_count; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < rounds; ++round) {
        Settings settings = settings_of(every_width[caller % 2], every_order[(caller + round) % 3], static_cast<std::uint64_t>(round));
        settings.workers = 1 + (caller + round) % 4;
        std::vector<float> out(256 * blocks);
        run(settings, launch(out));
        if (std::memcmp(out.data(), expected[settings.warp_width].data(), out.size() * sizeof(float)) != 0) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

// ---- settings ----

std::map<std::string, std::string> variables;

const char* read_variable(const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

std::string refusal(const char* name, const char* value) {
  variables = {{name, value}};
  try {
    settings_from(read_variable);
  } catch (const Failure& failure) {
    CHECK(failure.status == QUIRE_UNAVAILABLE);
    return failure.message;
  }
  return "";
}

TEST_CASE("settings: what is not set, and what is") {
  variables = {};
  Settings settings = settings_from(read_variable);
  CHECK(settings.warp_width == 32);
  CHECK(settings.order == Order::in_order);
  CHECK(settings.seed == 0);
  CHECK(settings.grid == 2147483647);
  CHECK(settings.devices == 1);
  CHECK(settings.workers >= 1);
  variables = {{"QUIRE_SIMT_WARP", "64"}, {"QUIRE_SIMT_ORDER", "random"}, {"QUIRE_SIMT_SEED", "18446744073709551615"},
               {"QUIRE_SIMT_GRID", "3"},  {"QUIRE_SIMT_DEVICES", "16"},   {"QUIRE_SIMT_THREADS", "5"}};
  settings = settings_from(read_variable);
  CHECK(settings.warp_width == 64);
  CHECK(settings.order == Order::random);
  CHECK(settings.seed == UINT64_MAX);
  CHECK(settings.grid == 3);
  CHECK(settings.devices == 16);
  CHECK(settings.workers == 5);
  const std::string words = in_words(settings);
  INFO(words);
  CHECK(has_in_order(words, {"warps of 64, threads in random order (seed 18446744073709551615), grids of at most 3 blocks, 5 workers on ",
                             ", 16 devices"}));
  variables = {{"QUIRE_SIMT_WARP", ""}, {"QUIRE_SIMT_ORDER", "greedy"}};
  settings = settings_from(read_variable);
  CHECK(settings.warp_width == 32);
  CHECK(settings.order == Order::greedy);
}

TEST_CASE("settings: what is not allowed is named, with what is") {
  CHECK(refusal("QUIRE_SIMT_WARP", "48") == "QUIRE_SIMT_WARP: \"48\"; allowed: 32, 64");
  CHECK(refusal("QUIRE_SIMT_ORDER", "Random") == "QUIRE_SIMT_ORDER: \"Random\"; allowed: in-order, random, greedy");
  CHECK(refusal("QUIRE_SIMT_SEED", "-1") == "QUIRE_SIMT_SEED: \"-1\"; allowed: 0 to 18446744073709551615");
  CHECK(refusal("QUIRE_SIMT_SEED", "18446744073709551616") ==
        "QUIRE_SIMT_SEED: \"18446744073709551616\"; allowed: 0 to 18446744073709551615");
  CHECK(refusal("QUIRE_SIMT_GRID", "0") == "QUIRE_SIMT_GRID: \"0\"; allowed: 1 to 2147483647");
  CHECK(refusal("QUIRE_SIMT_GRID", "2147483648") == "QUIRE_SIMT_GRID: \"2147483648\"; allowed: 1 to 2147483647");
  CHECK(refusal("QUIRE_SIMT_DEVICES", "17") == "QUIRE_SIMT_DEVICES: \"17\"; allowed: 1 to 16");
  CHECK(refusal("QUIRE_SIMT_DEVICES", "1x") == "QUIRE_SIMT_DEVICES: \"1x\"; allowed: 1 to 16");
  CHECK(refusal("QUIRE_SIMT_DEVICES", " 1") == "QUIRE_SIMT_DEVICES: \" 1\"; allowed: 1 to 16");
  CHECK(refusal("QUIRE_SIMT_THREADS", "0") == "QUIRE_SIMT_THREADS: \"0\"; allowed: 1 to 256");
}

}  // namespace
}  // namespace quire::simt::test
