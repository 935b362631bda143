// The few names in which kernels are written, for nvcc, clang's HIP and g++ under the emulator. Nothing else here knows a toolchain.
//
//   QUIRE_KERNEL(name, Parameters) { ... parameters.x ... }   a kernel, and a function `Kernel name()` for the host
//   QUIRE_DEVICE                                               a function of kernels
//   thread() threads()            this thread in its block, and their number (a multiple of 64)
//   block() blocks()              this block in its grid, and their number, 64-bit
//   warp_width() warp_lane()      32 or 64, at run time; this thread in its warp
//   barrier()                     of the block; everything written before it by the block is read after it
//   block_any(bool)               a barrier that answers whether it holds for any thread of the block
//   warp_sum(float) warp_max(float) warp_shuffle(float, lane)  of the whole warp: every thread of it takes part
//   shared_memory<T>()            the block's own memory of the launch's size, aligned to 16 bytes
//   store_racing(T*, T)           a store of 1, 2, 4 or 8 bytes that may race with another thread's: one of them remains (C4)
//   exp_of log_of tanh_of sqrt_of log1p_of   of floats
#pragma once

#include "kernel.h"

#if defined(__CUDACC__) || defined(__HIP__)

#if defined(__HIP__)
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif

#define QUIRE_DEVICE __device__ inline
#define QUIRE_KERNEL(kernel_name, Parameters)                                                      \
  static __global__ void kernel_name##_body(const Parameters parameters);                          \
  Kernel kernel_name() { return {#kernel_name, reinterpret_cast<const void*>(&kernel_name##_body)}; } \
  static __global__ __launch_bounds__(256) void kernel_name##_body(const Parameters parameters)

namespace quire::gpu {

QUIRE_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
QUIRE_DEVICE int threads() { return static_cast<int>(blockDim.x); }
QUIRE_DEVICE std::int64_t block() { return blockIdx.x; }
QUIRE_DEVICE std::int64_t blocks() { return gridDim.x; }
QUIRE_DEVICE int warp_width() { return warpSize; }
QUIRE_DEVICE void barrier() { __syncthreads(); }
QUIRE_DEVICE bool block_any(bool flag) { return __syncthreads_or(flag ? 1 : 0) != 0; }
#if defined(__HIP__)
QUIRE_DEVICE float warp_shuffle(float value, int lane) { return __shfl(value, lane); }
QUIRE_DEVICE float warp_exchange(float value, int mask) { return __shfl_xor(value, mask); }
#else
QUIRE_DEVICE float warp_shuffle(float value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
QUIRE_DEVICE float warp_exchange(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
#endif
// A tree in one fixed order, so every thread of the warp has the same bits.
QUIRE_DEVICE float warp_sum(float value) {
  for (int mask = warp_width() / 2; mask > 0; mask /= 2) value += warp_exchange(value, mask);
  return value;
}
QUIRE_DEVICE float warp_max(float value) {
  for (int mask = warp_width() / 2; mask > 0; mask /= 2) value = fmaxf(value, warp_exchange(value, mask));
  return value;
}
template <typename T>
QUIRE_DEVICE T* shared_memory() {
  extern __shared__ __align__(16) unsigned char quire_shared_memory[];
  return reinterpret_cast<T*>(quire_shared_memory);
}
template <typename T>
QUIRE_DEVICE void store_racing(T* to, T value) {
  *static_cast<volatile T*>(to) = value;
}
QUIRE_DEVICE float exp_of(float x) { return expf(x); }
QUIRE_DEVICE float log_of(float x) { return logf(x); }
QUIRE_DEVICE float log1p_of(float x) { return log1pf(x); }
QUIRE_DEVICE float tanh_of(float x) { return tanhf(x); }
QUIRE_DEVICE float sqrt_of(float x) { return sqrtf(x); }

}  // namespace quire::gpu

#else
#include "../simt/device.h"
#endif

namespace quire::gpu {
QUIRE_DEVICE int warp_lane() { return thread() % warp_width(); }
QUIRE_DEVICE int warp_number() { return thread() / warp_width(); }
QUIRE_DEVICE int warp_count() { return threads() / warp_width(); }
}  // namespace quire::gpu
