// The vendor's runtime under names that CUDA and HIP share: VENDOR(Malloc) is hipMalloc here. What differs has a name below.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>

#define VENDOR(name) hip##name
#define VENDOR_TEXT(name) "hip" #name

namespace quire::gpu::vendor {

using Properties = hipDeviceProp_t;
using Attribute = hipDeviceAttribute_t;
inline constexpr Attribute pools_supported = hipDeviceAttributeMemoryPoolsSupported;

/// ROCm 5's memory pools are young; those of 6 are used where the device says that it has them.
inline constexpr bool has_pools = HIP_VERSION >= 60000000;

/// Of a grid, all blocks together: a dispatch counts them in 32 bits.
inline constexpr std::int64_t most_threads = UINT32_MAX;

/// Every block may have all that there is.
inline constexpr std::int64_t unasked_shared_bytes = INT64_MAX;
inline std::size_t shared_bytes(const Properties& properties) { return properties.sharedMemPerBlock; }

/// Errors after which a device's queue is lost.
inline bool is_lasting(hipError_t status) {
  switch (status) {
    case hipErrorECCNotCorrectable:
    case hipErrorIllegalAddress:
    case hipErrorLaunchTimeOut:
    case hipErrorAssert:
    case hipErrorLaunchFailure: return true;
    default: return false;
  }
}

/// Errors that say what the machine has not, or not now.
inline bool is_unavailable(hipError_t status) {
  switch (status) {
    case hipErrorOutOfMemory:
    case hipErrorNotInitialized:
    case hipErrorInsufficientDriver:
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:
    case hipErrorInvalidImage:
    case hipErrorNoBinaryForGpu:
    case hipErrorRuntimeMemory: return true;
    default: return false;
  }
}

/// To the device before the first launch, so that it takes no longer than the others.
#if HIP_VERSION >= 60000000
inline hipError_t upload(hipGraphExec_t graph, hipStream_t stream) { return hipGraphUpload(graph, stream); }
#else
inline hipError_t upload(hipGraphExec_t, hipStream_t) { return hipSuccess; }  // ROCm 5.2 has no such call
#endif

}  // namespace quire::gpu::vendor
