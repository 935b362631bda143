// One block of a kernel, run on the calling thread: its threads as fibers, its barriers, its warps' operations, its shared memory.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "../gpu/kernel.h"
#include "fault.h"
#include "fiber.h"
#include "run_queue.h"
#include "settings.h"
#include "shared_memory.h"

namespace quire::simt {

/// Runs blocks one after another and keeps the fibers between them. One operating system thread at a time uses it, and calls `run` from no
/// fiber.
///
/// Under the thread sanitizer each thread of a block is a race identity with a stack of its own, for what one thread left on a stack and
/// the next overwrites is no race of the kernel's. Two sets of them alternate from block to block, so that two blocks are not ordered by
/// being run by one set. What runs on fibers, here and in what it calls, is compiled without the sanitizer and calls nothing that it
/// intercepts.
class Block {
 public:
  static constexpr int most_threads = RunQueue::most_threads;

  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Before and after the blocks of a launch.
  void begin(const Settings& settings, const gpu::Launch& launch, std::int64_t blocks);
  void end();
  /// False upon a fault: of kernels' locals then no destructor runs.
  bool run(std::int64_t number);
  /// Of the last run.
  Fault::Kind fault() const { return fault_.kind; }
  std::string fault_text() const;

  // For the dialect's functions, on the fiber of a running thread.
  int thread() const { return thread_; }
  int threads() const { return threads_; }
  int warp_width() const { return width_; }
  std::int64_t number() const { return number_; }
  std::int64_t blocks() const { return blocks_; }
  void* shared_memory() const { return set_->shared.data(); }
  /// The calling thread waits for its block; answers whether any thread had a flag.
  bool wait_for_block(Operation operation, bool flag, std::source_location where);
  /// The calling thread waits for its warp; answers its result.
  float wait_for_warp(Operation operation, float value, int lane, std::source_location where);

 private:
  struct Thread {
    Fiber* fiber = nullptr;  ///< where it waits; null: not begun, or ended
    Standing standing;
  };
  struct Warp {
    int arrived = 0;
    bool divergent = false;
    float result = 0;
    Standing last;  ///< of the last thread to arrive
  };
  /// What one block after another, or every second under the thread sanitizer, runs with.
  struct Set {
    explicit Set(Block* block) : fibers(block, fiber_entry) {}
    FiberPool fibers;
    SharedMemory shared;
    // Tags to the thread sanitizer. By turns: what comes from one block or barrier must not be seen in the next by who is still before it.
    unsigned turn = 0;
    char blocks[2] = {};
    char barriers[2] = {};
  };

  static void fiber_entry(boost::context::detail::transfer_t transfer);
  void run_threads(Fiber& self);
  void call_kernel();
  /// Some other thread goes on; returns when the calling one is to.
  void give_way();
  Fiber* fiber_to_begin();
  void leave(Fiber& self);
  [[noreturn]] void fail(Fault::Kind kind, std::int64_t detail = 0);
  void block_arrived();
  void warp_arrived(int number, Operation operation);
  void abandon();

  Settings settings_;
  const char* kernel_ = "";
  void (*entry_)(const void*) = nullptr;
  const void* parameters_ = nullptr;
  std::int64_t blocks_ = 0;
  std::int64_t shared_bytes_ = 0;
  int threads_ = 0;
  int width_ = 32;
  int width_shift_ = 5;

  std::int64_t number_ = 0;
  int thread_ = 0;
  int ended_ = 0;
  int arrived_ = 0;
  bool divergent_ = false;
  Standing last_;
  bool any_ = false;
  bool any_result_ = false;
  unsigned turn_ = 0;
  Fault fault_;
  Fiber* running_ = nullptr;
  Fiber main_;
  RunQueue queue_;
  Set* set_ = nullptr;
  Thread states_[most_threads];
  Warp warps_[most_threads / 32];
  float values_[most_threads];
  int lanes_[most_threads];
  Standing standing_at_fault_[most_threads];
  Set sets_[thread_sanitizer ? 2 : 1];
};

/// The block whose kernel runs on the calling operating system thread. One slot of the static thread-local storage: a plugin may have that
/// much, and a kernel asks for its thread's number often.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Block* running_block;

}  // namespace quire::simt
