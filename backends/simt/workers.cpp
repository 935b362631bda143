// Workers by oneTBB or plain threads.
#include "workers.h"

#if QUIRE_HAVE_TBB
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <memory>
#include <mutex>
#include <vector>
#else
#include <system_error>
#include <vector>
#endif
#include <thread>

namespace quire::simt {

#if QUIRE_SIMT_TSAN

const char* workers_name() { return "one thread"; }
void on_workers(int, void (*work)(void*), void* argument) { work(argument); }

#elif QUIRE_HAVE_TBB

namespace {
// oneTBB has as many threads as the machine unless it is told otherwise.
void allow(int workers) {
  static std::mutex mutex;
  static int allowed = static_cast<int>(std::thread::hardware_concurrency());
  static std::unique_ptr<tbb::global_control> control;
  const std::lock_guard lock(mutex);
  if (workers <= allowed) return;
  control.reset();
  control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(workers));
  allowed = workers;
}

// An arena serves one launch at a time: callers of one arena would wait for each other's places. Kept, for its threads need not find it
// anew.
class Arena {
 public:
  explicit Arena(int workers) {
    const std::lock_guard lock(mutex());
    for (auto& idle : kept()) {
      if (idle == nullptr || idle->max_concurrency() != workers) continue;
      arena_.swap(idle);
      return;
    }
    arena_ = std::make_unique<tbb::task_arena>(workers);
  }
  ~Arena() {
    const std::lock_guard lock(mutex());
    for (auto& place : kept()) {
      if (place != nullptr) continue;
      place.swap(arena_);
      return;
    }
    kept().push_back(std::move(arena_));
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  tbb::task_arena& operator*() { return *arena_; }

 private:
  // Never destroyed: a stream's thread may outlive what the process destroys at its end.
  static std::mutex& mutex() {
    static auto* const instance = new std::mutex;
    return *instance;
  }
  static std::vector<std::unique_ptr<tbb::task_arena> >& kept() {
    static auto* const instance = new std::vector<std::unique_ptr<tbb::task_arena> >;
    return *instance;
  }
  std::unique_ptr<tbb::task_arena> arena_;
};

}  // namespace

const char* workers_name() { return "oneTBB"; }

void on_workers(int workers, void (*work)(void*), void* argument) {
  allow(workers);
  Arena arena(workers);
  // Waiting for its own blocks alone: a caller that took another launch's meanwhile could wait for one that waits for it.
  (*arena).execute([&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          0, workers, [&](int) { work(argument); }, tbb::simple_partitioner());
    });
  });
}

#else

const char* workers_name() { return "plain threads"; }

void on_workers(int workers, void (*work)(void*), void* argument) {
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(workers));
  try {
    for (int i = 1; i < workers; ++i) others.emplace_back(work, argument);
  } catch (const std::system_error&) {
    // Those that began are enough.
  }
  work(argument);
  for (std::thread& other : others) other.join();
}

#endif

}  // namespace quire::simt
