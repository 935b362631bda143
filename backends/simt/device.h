// The dialect's names under the emulator: what a kernel calls, as the emulator gives it. Included by gpu/dialect.h alone.
#pragma once

#include "../gpu/kernel.h"

#include <cmath>
#include <source_location>

#define QUIRE_DEVICE inline
#define QUIRE_KERNEL(kernel_name, Parameters)                                                                                                  \
  static void kernel_name##_body([[maybe_unused]] const Parameters& parameters);                                                               \
  static void kernel_name##_entry(const void* parameters) { kernel_name##_body(*static_cast<const Parameters*>(parameters)); }                  \
  Kernel kernel_name() { return {#kernel_name, reinterpret_cast<const void*>(&kernel_name##_entry)}; }                                          \
  static void kernel_name##_body([[maybe_unused]] const Parameters& parameters)

namespace quire::gpu {

// Const to the compiler, though each thread has others: within one call of a kernel they never change.
[[gnu::const]] int thread();
[[gnu::const]] int threads();
[[gnu::const]] std::int64_t block();
[[gnu::const]] std::int64_t blocks();
[[gnu::const]] int warp_width();
[[gnu::const]] void* shared_memory_address();

// Barriers and warp operations note where they are called: threads must meet at one place.
void barrier(std::source_location where = std::source_location::current());
bool block_any(bool flag, std::source_location where = std::source_location::current());
float warp_sum(float value, std::source_location where = std::source_location::current());
float warp_max(float value, std::source_location where = std::source_location::current());
float warp_shuffle(float value, int lane, std::source_location where = std::source_location::current());

template <typename T>
T* shared_memory() {
  return static_cast<T*>(shared_memory_address());
}
template <typename T>
void store_racing(T* to, T value) {
  __atomic_store(to, &value, __ATOMIC_RELAXED);
}
inline float exp_of(float x) { return std::exp(x); }
inline float log_of(float x) { return std::log(x); }
inline float log1p_of(float x) { return std::log1p(x); }
inline float tanh_of(float x) { return std::tanh(x); }
inline float sqrt_of(float x) { return std::sqrt(x); }

}  // namespace quire::gpu
