// Threads: oneTBB, or plain threads where it is absent or a sanitizer must see every lock.
#include "parallel.h"

#include <quire/error.h>

#if QUIRE_HAVE_TBB
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <map>
#include <memory>
#else
#include <atomic>
#include <exception>
#include <vector>
#endif

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace quire::reference {

int thread_count() {
  static const int machine = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 4096U));
  const char* text = std::getenv("QUIRE_THREADS");
  if (text == nullptr || *text == '\0') return machine;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (*end != '\0' || number < 1 || number > 4096) reject("QUIRE_THREADS", "\"" + std::string(text) + "\"", "1 to 4096");
  return static_cast<int>(number);
}

namespace {

// Below this many additions a thread costs more than it saves (about 10 microseconds).
constexpr double smallest_shared_work = 50000;

void serial_for(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace

#if QUIRE_HAVE_TBB

namespace {

// Kept from call to call: its threads need not find it anew.
tbb::task_arena& arena_of(int threads) {
  static std::mutex mutex;
  static std::map<int, tbb::task_arena> arenas;
  // More threads than cores are allowed where they are asked for. Of several controls the least would count: there is one.
  static int allowed = 0;
  static std::unique_ptr<tbb::global_control> control;
  const std::lock_guard lock(mutex);
  if (threads > allowed) {
    control.reset();
    control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
    allowed = threads;
  }
  return arenas.try_emplace(threads, threads).first->second;
}

}  // namespace

const char* parallel_name() { return "oneTBB"; }

void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body) {
  const int threads = thread_count();
  if (threads == 1 || count < 2 || work < smallest_shared_work) return serial_for(count, body);
  arena_of(threads).execute([&] { tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) { body(i); }); });
}

#else

const char* parallel_name() { return "plain threads"; }

void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body) {
  const int threads = static_cast<int>(std::min<std::int64_t>(thread_count(), count));
  if (threads < 2 || work < smallest_shared_work) return serial_for(count, body);
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto worker = [&] {
    try {
      for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next.store(count);
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(worker);
    worker();
  }
  if (failure) std::rethrow_exception(failure);
}

#endif

}  // namespace quire::reference
