// What the sanitizers must be told about fibers; nothing in other builds. The build defines QUIRE_SIMT_ASAN and QUIRE_SIMT_TSAN: under the
// thread sanitizer the files that run on fibers are compiled without it, so the compiler's own macro would not tell.
#pragma once

#include <cstddef>

#if QUIRE_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if QUIRE_SIMT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace quire::simt {

#if QUIRE_SIMT_ASAN
constexpr bool address_sanitizer = true;
inline void before_switch(void** fake_stack, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, size);
}
inline void after_switch(void* fake_stack, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
}
inline void forget_frames(const void* bottom, std::size_t size) { __asan_unpoison_memory_region(bottom, size); }
inline void forbid(const void* begin, std::size_t size) { __asan_poison_memory_region(begin, size); }
inline void allow(const void* begin, std::size_t size) { __asan_unpoison_memory_region(begin, size); }
#else
constexpr bool address_sanitizer = false;
inline void before_switch(void**, const void*, std::size_t) {}
inline void after_switch(void*, const void**, std::size_t*) {}
inline void forget_frames(const void*, std::size_t) {}
inline void forbid(const void*, std::size_t) {}
inline void allow(const void*, std::size_t) {}
#endif

// Under the thread sanitizer each thread of a block is a thread of its own to it, and nothing but barriers orders them.
#if QUIRE_SIMT_TSAN
constexpr bool thread_sanitizer = true;
inline void* race_identity_of_caller() { return __tsan_get_current_fiber(); }
inline void* new_race_identity() { return __tsan_create_fiber(0); }
inline void end_race_identity(void* identity) { __tsan_destroy_fiber(identity); }
inline void take_race_identity(void* identity) { __tsan_switch_to_fiber(identity, __tsan_switch_to_fiber_no_sync); }
inline void order_before(void* tag) { __tsan_release(tag); }
inline void order_after(void* tag) { __tsan_acquire(tag); }
#else
constexpr bool thread_sanitizer = false;
inline void* race_identity_of_caller() { return nullptr; }
inline void* new_race_identity() { return nullptr; }
inline void end_race_identity(void*) {}
inline void take_race_identity(void*) {}
inline void order_before(void*) {}
inline void order_after(void*) {}
#endif

}  // namespace quire::simt
