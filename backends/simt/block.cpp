// A block's threads taking turns. Of the members here all but begin, end and fault_text run on fibers or between two of their switches: see
// block.h for what that means under the thread sanitizer.
#include "block.h"

#include "warp.h"

namespace quire::simt {
namespace {

const void* address_of(std::source_location where) {
  static_assert(sizeof where == sizeof(const void*));
  return __builtin_bit_cast(const void*, where);
}

bool text_equals(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

bool same_place(const Standing& a, const Standing& b) {
  if (a.operation != b.operation) return false;
  if (address_of(a.where) == address_of(b.where)) return true;
  return a.where.line() == b.where.line() && a.where.column() == b.where.column() && text_equals(a.where.file_name(), b.where.file_name());
}

}  // namespace

constinit thread_local Block* running_block = nullptr;

#if QUIRE_SIMT_TSAN
Block::Block() : sets_{Set(this), Set(this)} {
#else
Block::Block() : sets_{Set(this)} {
#endif
  main_.owner = this;
  set_ = &sets_[0];
}

void Block::begin(const Settings& settings, const gpu::Launch& launch, std::int64_t blocks) {
  settings_ = settings;
  kernel_ = launch.kernel.name;
  entry_ = reinterpret_cast<void (*)(const void*)>(const_cast<void*>(launch.kernel.entry));
  parameters_ = launch.parameters;
  blocks_ = blocks;
  shared_bytes_ = launch.shared_bytes;
  threads_ = launch.threads;
  width_ = settings.warp_width;
  width_shift_ = width_ == 64 ? 6 : 5;
  fault_ = {};
  main_.race_identity = race_identity_of_caller();
  for (Set& set : sets_) {
    if (!set.shared.resize(shared_bytes_) || (thread_sanitizer && !set.fibers.reserve(threads_))) fault_ = {Fault::no_memory, 0, 0};
    for (char& tag : set.blocks) order_before(&tag);
  }
}

void Block::end() {
  for (Set& set : sets_)
    for (char& tag : set.blocks) order_after(&tag);
}

bool Block::run(std::int64_t number) {
  if (fault_.kind != Fault::none) return false;
  if constexpr (thread_sanitizer) set_ = set_ == &sets_[0] ? &sets_[1] : &sets_[0];
  ++set_->turn;
  number_ = number;
  ended_ = arrived_ = 0;
  divergent_ = any_ = false;
  for (int warp = 0; warp < threads_ >> width_shift_; ++warp) warps_[warp].arrived = 0, warps_[warp].divergent = false;
  set_->shared.poison();
  // Any odd constant keeps the blocks' sequences apart.
  queue_.begin(settings_.order, settings_.seed + static_cast<std::uint64_t>(number) * 0xd1342543de82ef95U);
  queue_.add(0, threads_);

  running_block = this;
  thread_ = queue_.take();
  Fiber* first = fiber_to_begin();
  if (first == nullptr) {
    fault_ = {Fault::no_memory, thread_, 0};
  } else {
    running_ = first;
    switch_fiber(main_, *first);
  }
  running_block = nullptr;

  if (fault_.kind == Fault::none) {
    std::int64_t byte = 0;
    if (!set_->shared.edges_whole(&byte)) fault_ = {Fault::shared_overrun, 0, byte};
  }
  if (fault_.kind != Fault::none) abandon();
  return fault_.kind == Fault::none;
}

std::string Block::fault_text() const {
  return simt::fault_text(fault_, kernel_, number_, standing_at_fault_, threads_, width_, shared_bytes_);
}

void Block::abandon() {
  for (int thread = 0; thread < threads_; ++thread) {
    standing_at_fault_[thread] = states_[thread].standing;
    states_[thread].fiber = nullptr;
  }
  // What the abandoned threads did is done before the caller goes on.
  set_->fibers.abandon_all([](void* tag) { order_before(tag); }, &set_->blocks[0]);
}

void Block::fiber_entry(boost::context::detail::transfer_t transfer) {
  Block& block = *static_cast<Block*>(static_cast<Fiber*>(transfer.data)->owner);
  Fiber& self = *block.running_;
  arrived(self, transfer);
  block.run_threads(self);
}

// A thread that never waits leaves its fiber to the next one: a fiber is kept for a thread only while it waits.
void Block::run_threads(Fiber& self) {
  for (;;) {
    order_after(&set_->blocks[set_->turn % 2]);
    call_kernel();
    order_before(&set_->blocks[(set_->turn + 1) % 2]);
    states_[thread_].standing.operation = Operation::ended;
    states_[thread_].fiber = nullptr;
    ++ended_;
    if (queue_.empty()) {
      if (ended_ != threads_) fault_ = {Fault::stuck, thread_, 0};
      leave(self);
      continue;
    }
    thread_ = queue_.take();
    Fiber* next = states_[thread_].fiber;
    if (next == nullptr) {
      if constexpr (!thread_sanitizer) continue;
      next = fiber_to_begin();
    }
    if constexpr (!thread_sanitizer) set_->fibers.give(self);
    running_ = next;
    switch_fiber(self, *next);
  }
}

void Block::call_kernel() {
  try {
    entry_(parameters_);
  } catch (...) {
    fault_ = {Fault::thrown, thread_, 0};
  }
  if (fault_.kind != Fault::none) fail(fault_.kind);
}

void Block::leave(Fiber& self) {
  if constexpr (!thread_sanitizer) set_->fibers.give(self);
  switch_fiber(self, main_);
}

void Block::fail(Fault::Kind kind, std::int64_t detail) {
  fault_ = {kind, thread_, detail};
  switch_fiber(*running_, main_);
  __builtin_unreachable();
}

Fiber* Block::fiber_to_begin() {
  if constexpr (thread_sanitizer) return &set_->fibers.at(thread_);
  return set_->fibers.take();
}

void Block::give_way() {
  if (queue_.empty()) fail(Fault::stuck);
  const int self = thread_;
  const int other = queue_.take();
  if (other == self) return;
  thread_ = other;
  Fiber& from = *running_;
  states_[self].fiber = &from;
  Fiber* to = states_[other].fiber;
  if (to == nullptr) {
    to = fiber_to_begin();
    if (to == nullptr) fail(Fault::no_memory);
  }
  running_ = to;
  switch_fiber(from, *to);
}

bool Block::wait_for_block(Operation operation, bool flag, std::source_location where) {
  Standing& standing = states_[thread_].standing;
  standing = {operation, where};
  any_ |= flag;
  // Whoever leaves this barrier late must not see what others do before the next one: the tags take turns.
  void* const tag = &set_->barriers[turn_ % 2];
  order_before(tag);
  // Compared along a chain of neighbours in time: the last to arrive stays to be compared with.
  if (arrived_ > 0 && !same_place(last_, standing)) divergent_ = true;
  last_ = standing;
  if (++arrived_ == threads_) block_arrived();
  give_way();
  order_after(tag);
  return any_result_;
}

void Block::block_arrived() {
  if (divergent_) fail(Fault::divergent_barrier);
  arrived_ = 0;
  any_result_ = any_;
  any_ = false;
  ++turn_;
  queue_.add(0, threads_);
}

float Block::wait_for_warp(Operation operation, float value, int lane, std::source_location where) {
  const int self = thread_;
  const int number = self >> width_shift_;
  Warp& warp = warps_[number];
  states_[self].standing = {operation, where};
  values_[self] = value;
  lanes_[self] = lane;
  if (operation == Operation::warp_shuffle && (lane < 0 || lane >= width_)) fail(Fault::lane_outside, lane);
  if (warp.arrived > 0 && !same_place(warp.last, states_[self].standing)) warp.divergent = true;
  warp.last = states_[self].standing;
  if (++warp.arrived == width_) warp_arrived(number, operation);
  give_way();
  return operation == Operation::warp_shuffle ? values_[self] : warp.result;
}

void Block::warp_arrived(int number, Operation operation) {
  Warp& warp = warps_[number];
  if (warp.divergent) fail(Fault::divergent_warp_operation);
  warp.arrived = 0;
  const int first = number << width_shift_;
  if (operation == Operation::warp_sum)
    warp.result = sum_of_warp(values_ + first, width_);
  else if (operation == Operation::warp_max)
    warp.result = max_of_warp(values_ + first, width_);
  else
    shuffle_warp(values_ + first, lanes_ + first, width_);
  queue_.add(first, width_);
}

}  // namespace quire::simt
