// The fibers' stacks.
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cfenv>

namespace quire::simt {
namespace {

constexpr std::size_t kibibyte = 1024;
// Instrumented frames are larger.
constexpr std::size_t stack_bytes = (address_sanitizer || thread_sanitizer ? 256 : 64) * kibibyte;
// So many stacks in one mapping.
constexpr int stacks_at_once = 16;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t stride() { return stack_bytes + page_bytes(); }

}  // namespace

FiberPool::~FiberPool() {
  for (int i = 0; i < count_; ++i)
    if (fibers_[i].race_identity != nullptr) end_race_identity(fibers_[i].race_identity);
  for (int i = 0; i < count_; i += stacks_at_once) {
    forget_frames(fibers_[i].bottom, stride() * stacks_at_once - page_bytes());
    munmap(const_cast<char*>(static_cast<const char*>(fibers_[i].bottom)) - page_bytes(), stride() * stacks_at_once);
  }
}

bool FiberPool::grow() {
  if (count_ + stacks_at_once > most) return false;
  void* memory = mmap(nullptr, stride() * stacks_at_once, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  for (int i = 0; i < stacks_at_once; ++i) {
    char* bottom = static_cast<char*>(memory) + stride() * static_cast<std::size_t>(i) + page_bytes();
    if (mprotect(bottom, stack_bytes, PROT_READ | PROT_WRITE) != 0) {
      munmap(memory, stride() * stacks_at_once);
      return false;
    }
    fibers_[count_ + i].bottom = bottom;
  }
  for (int i = stacks_at_once; i-- > 0;) {
    Fiber& fiber = fibers_[count_ + i];
    fiber.owner = owner_;
    // Stacks that all end at the same place of a page would share a few sets of the first cache.
    fiber.size = stack_bytes - static_cast<std::size_t>(count_ + i) % 16 * 256;
    begin(fiber);
    give(fiber);
  }
  count_ += stacks_at_once;
  return true;
}

bool FiberPool::reserve(int count) {
  while (count_ < count)
    if (!grow()) return false;
  return true;
}

void FiberPool::begin(Fiber& fiber) {
  // A fiber has its own floating-point environment, and a caller's (flushing denormals, say) must not become it.
  std::fenv_t callers;
  std::fegetenv(&callers);
  std::fesetenv(FE_DFL_ENV);
  fiber.context =
      boost::context::detail::make_fcontext(const_cast<char*>(static_cast<const char*>(fiber.bottom)) + fiber.size, fiber.size, entry_);
  std::fesetenv(&callers);
  fiber.fake_stack = nullptr;
  fiber.race_identity = new_race_identity();
}

void FiberPool::abandon_all(void (*last_words)(void* argument), void* argument) {
  void* caller = race_identity_of_caller();
  idle_ = nullptr;
  for (int i = count_; i-- > 0;) {
    Fiber& fiber = fibers_[i];
    take_race_identity(fiber.race_identity);
    last_words(argument);
    take_race_identity(caller);
    if (fiber.race_identity != nullptr) end_race_identity(fiber.race_identity);
    forget_frames(fiber.bottom, fiber.size);
    begin(fiber);
    give(fiber);
  }
}

}  // namespace quire::simt
