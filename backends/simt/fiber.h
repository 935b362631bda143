// Fibers: stacks that take turns on one operating system thread, and the switch between them.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "sanitizer.h"

namespace quire::simt {

struct Fiber {
  boost::context::detail::fcontext_t context = nullptr;  ///< where it goes on; of the running one stale
  void* owner = nullptr;
  Fiber* next_idle = nullptr;
  const void* bottom = nullptr;  ///< of its stack: the lowest address
  std::size_t size = 0;
  void* fake_stack = nullptr;     ///< the address sanitizer's
  void* race_identity = nullptr;  ///< the thread sanitizer's
};

/// What a fiber does upon arriving on its stack, from `transfer`; answers the fiber that it came from.
inline Fiber& arrived(Fiber& self, boost::context::detail::transfer_t transfer) {
  Fiber& from = *static_cast<Fiber*>(transfer.data);
  from.context = transfer.fctx;
  after_switch(self.fake_stack, &from.bottom, &from.size);
  return from;
}

/// Goes on with `to`; returns when somebody switches to `from` again.
inline void switch_fiber(Fiber& from, Fiber& to) {
  before_switch(&from.fake_stack, to.bottom, to.size);
  take_race_identity(to.race_identity);
  arrived(from, boost::context::detail::jump_fcontext(to.context, &from));
}

/// Fibers of one worker, with stacks between guard pages; made when they are first needed and kept.
class FiberPool {
 public:
  using Entry = void (*)(boost::context::detail::transfer_t);

  FiberPool(void* owner, Entry entry) : owner_(owner), entry_(entry) {}
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  /// A fiber that waits in its entry or at its end. Null where there is no memory for a stack.
  Fiber* take() {
    if (idle_ == nullptr && !grow()) return nullptr;
    Fiber* fiber = idle_;
    idle_ = fiber->next_idle;
    return fiber;
  }
  void give(Fiber& fiber) {
    fiber.next_idle = idle_;
    idle_ = &fiber;
  }
  /// Fiber `index`, of those that `reserve` made: for a user that gives each thread its own.
  Fiber& at(int index) { return fibers_[index]; }
  bool reserve(int count);

  /// Every fiber begins anew; what stood on their stacks is forgotten without any destructor. `last_words` is called as each of them.
  void abandon_all(void (*last_words)(void* argument), void* argument);

 private:
  static constexpr int most = 256;

  bool grow();
  void begin(Fiber& fiber);

  void* owner_;
  Entry entry_;
  Fiber* idle_ = nullptr;
  int count_ = 0;
  Fiber fibers_[most];
};

}  // namespace quire::simt
