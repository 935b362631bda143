// Blocks over workers.
#include "launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "../gpu/runtime.h"
#include "block.h"
#include "workers.h"

namespace quire::simt {
namespace {

// Waking a worker takes some microseconds, and most launches of a test suite take less.
constexpr std::chrono::microseconds alone{30};

/// Blocks with their fibers, kept from launch to launch: as many as ever ran beside each other.
class Blocks {
 public:
  std::unique_ptr<Block> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto block = std::move(idle_.back());
        idle_.pop_back();
        return block;
      }
    }
    return std::make_unique<Block>();
  }
  void give(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(block));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> idle_;
};

// Never destroyed: a stream's thread may outlive what the process destroys at its end.
Blocks& kept_blocks() {
  static auto* const blocks = new Blocks;
  return *blocks;
}

struct Grid {
  Grid(const Settings& with, const gpu::Launch& what, std::int64_t count) : settings(with), launch(what), blocks(count) {}

  const Settings& settings;
  const gpu::Launch& launch;
  std::int64_t blocks;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> faulty{false};
  std::mutex mutex;
  std::int64_t faulty_block = 0;
  Fault::Kind kind = Fault::none;
  std::string text;

  void keep(std::int64_t number, Fault::Kind what, std::string words) {
    const std::lock_guard lock(mutex);
    if (kind != Fault::none && faulty_block <= number) return;
    faulty_block = number;
    kind = what;
    text = std::move(words);
    faulty = true;
  }
};

/// Takes blocks until none is left, or until `deadline` has passed.
void take_blocks(Grid& grid, Block& block, const std::chrono::steady_clock::time_point* deadline) {
  while (!grid.faulty.load(std::memory_order_relaxed)) {
    const std::int64_t number = grid.next.fetch_add(1, std::memory_order_relaxed);
    if (number >= grid.blocks) return;
    if (!block.run(number)) return grid.keep(number, block.fault(), block.fault_text());
    if (deadline != nullptr && std::chrono::steady_clock::now() > *deadline) return;
  }
}

void take_part(Grid& grid, const std::chrono::steady_clock::time_point* deadline) {
  try {
    auto block = kept_blocks().take();
    block->begin(grid.settings, grid.launch, grid.blocks);
    take_blocks(grid, *block, deadline);
    block->end();
    kept_blocks().give(std::move(block));
  } catch (const std::bad_alloc&) {
    grid.keep(0, Fault::no_memory, "no memory for the emulator's blocks");
  }
}

}  // namespace

void require_launchable(const gpu::Launch& launch) {
  const auto require = [&](bool holds, const char* what, std::int64_t given, const std::string& allowed) {
    if (!holds) throw gpu::Failure{QUIRE_INTERNAL, fmt::format("kernel {}: {}: {}; allowed: {}", launch.kernel.name, what, given, allowed)};
  };
  require(launch.kernel.entry != nullptr, "entry", 0, "a function");
  require(launch.blocks >= 0, "blocks", launch.blocks, "0 or more");
  require(launch.threads >= 64 && launch.threads <= Block::most_threads && launch.threads % 64 == 0, "threads", launch.threads,
          fmt::format("multiples of 64 to {}", Block::most_threads));
  require(launch.shared_bytes >= 0 && launch.shared_bytes <= most_shared_bytes, "shared_bytes", launch.shared_bytes,
          fmt::format("0 to {}", most_shared_bytes));
}

void run(const Settings& settings, const gpu::Launch& launch) {
  require_launchable(launch);
  Grid grid(settings, launch, std::min(launch.blocks, settings.grid));
  if (grid.blocks == 0) return;
  const bool may_share = !thread_sanitizer && settings.workers > 1 && grid.blocks > 1;
  const auto deadline = std::chrono::steady_clock::now() + alone;
  take_part(grid, may_share ? &deadline : nullptr);
  const std::int64_t left = grid.blocks - std::min(grid.blocks, grid.next.load());
  if (left > 0 && !grid.faulty) {
    const auto workers = static_cast<int>(std::min<std::int64_t>(settings.workers, left));
    if (workers == 1)
      take_part(grid, nullptr);
    else
      on_workers(
          workers, [](void* argument) { take_part(*static_cast<Grid*>(argument), nullptr); }, &grid);
  }
  if (grid.kind != Fault::none) throw gpu::Failure{grid.kind == Fault::no_memory ? QUIRE_UNAVAILABLE : QUIRE_INTERNAL, grid.text};
}

}  // namespace quire::simt
