// The threads of a block that can go on, and which of them is next.
#pragma once

#include <cstdint>

#include "settings.h"

namespace quire::simt {

/// Threads become able to go on in ranges: a block at its start and after its barrier, a warp after its operation. Ordered queues keep the
/// ranges, the random one each thread.
class RunQueue {
 public:
  static constexpr int most_threads = 256;

  void begin(Order order, std::uint64_t seed) {
    order_ = order;
    state_ = seed;
    first_ = ranges_ = bag_ = 0;
  }
  bool empty() const { return ranges_ == 0 && bag_ == 0; }

  void add(int first, int count) {
    if (order_ == Order::random) {
      for (int thread = first; thread < first + count; ++thread) threads_[bag_++] = static_cast<std::int16_t>(thread);
    } else if (order_ == Order::greedy) {
      first_ = (first_ + capacity - 1) % capacity;
      range_[first_] = {first, first + count};
      ++ranges_;
    } else {
      range_[(first_ + ranges_++) % capacity] = {first, first + count};
    }
  }

  /// Not of an empty queue.
  int take() {
    if (order_ == Order::random) {
      const auto chosen = static_cast<int>((next_random() >> 32) * static_cast<std::uint64_t>(bag_) >> 32);
      const int thread = threads_[chosen];
      threads_[chosen] = threads_[--bag_];
      return thread;
    }
    Range& range = range_[first_];
    const int thread = range.next++;
    if (range.next == range.end) {
      first_ = (first_ + 1) % capacity;
      --ranges_;
    }
    return thread;
  }

 private:
  struct Range {
    int next, end;
  };
  // Ranges are disjoint and each but the first is a whole warp or the whole block, so there are fewer.
  static constexpr unsigned capacity = 16;

  // splitmix64.
  std::uint64_t next_random() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
  }

  Order order_ = Order::in_order;
  std::uint64_t state_ = 0;
  unsigned first_ = 0;
  unsigned ranges_ = 0;
  int bag_ = 0;
  Range range_[capacity];
  std::int16_t threads_[most_threads];
};

}  // namespace quire::simt
