// The vendor's runtime under names that CUDA and HIP share: VENDOR(Malloc) is cudaMalloc here. What differs has a name below.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#define VENDOR(name) cuda##name
#define VENDOR_TEXT(name) "cuda" #name

namespace quire::gpu::vendor {

using Properties = cudaDeviceProp;
using Attribute = cudaDeviceAttr;
inline constexpr Attribute pools_supported = cudaDevAttrMemoryPoolsSupported;

/// Streams have memory pools where the device says so.
inline constexpr bool has_pools = true;

/// Of a grid, all blocks together.
inline constexpr std::int64_t most_threads = INT64_MAX;

/// What every block may have, and what one may have when its kernel asks for more than it gets unasked.
inline constexpr std::int64_t unasked_shared_bytes = 48 * 1024;
inline std::size_t shared_bytes(const Properties& properties) { return properties.sharedMemPerBlockOptin; }

/// Errors after which a device's context is lost.
inline bool is_lasting(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

/// Errors that say what the machine has not, or not now.
inline bool is_unavailable(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
    case cudaErrorInitializationError:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound: return true;
    default: return false;
  }
}

/// To the device before the first launch, so that it takes no longer than the others.
inline cudaError_t upload(cudaGraphExec_t graph, cudaStream_t stream) { return cudaGraphUpload(graph, stream); }

}  // namespace quire::gpu::vendor
