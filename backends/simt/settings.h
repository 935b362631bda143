// What the emulator's environment variables say: warp width, order of threads, grid limit, devices, workers.
#pragma once

#include <cstdint>
#include <string>

namespace quire::simt {

/// Which of the threads that can go on does.
enum class Order {
  in_order,  ///< each in its turn, by number
  random,    ///< any, by a seed
  greedy     ///< those of a warp that was just released, as far as the next barrier of the block
};

struct Settings {
  static constexpr int most_devices = 16;
  static constexpr std::int64_t most_blocks = 2147483647;  ///< of a grid, as on the GPUs

  int warp_width = 32;  ///< 32 or 64
  Order order = Order::in_order;
  std::uint64_t seed = 0;           ///< of the random order
  std::int64_t grid = most_blocks;  ///< a launch of more blocks is cut to it
  int devices = 1;
  int workers = 1;  ///< operating system threads over which a launch's blocks go
};

/// From variables as `read` gives them (null or empty: not set). Throws gpu::Failure QUIRE_UNAVAILABLE naming a bad one and what is
/// allowed.
Settings settings_from(const char* (*read)(const char* name));

/// The process's, read at the first call; throws that call's Failure at each later one.
const Settings& settings();

/// "warps of 32, threads in order, 2 workers on oneTBB, 1 device".
std::string in_words(const Settings& settings);

}  // namespace quire::simt
