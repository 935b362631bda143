// The vendor's runtime under names that CUDA and HIP share: VENDOR(Malloc) is cudaMalloc here. What differs has a name below.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#define VENDOR(name) cuda##name
#define VENDOR_TEXT(name) "cuda" #name

#define VENDOR_DEVICE_PROPERTIES cudaDeviceProp
#define VENDOR_DEVICE_ATTRIBUTE cudaDeviceAttr

namespace quire::gpu::vendor {

/// Streams have memory pools where the device says so.
inline constexpr bool has_pools = true;

/// Of a grid, all blocks together.
inline constexpr std::int64_t most_threads = INT64_MAX;

/// What a block may have when its kernel asks for more than it gets unasked.
inline std::size_t shared_bytes(const cudaDeviceProp& properties) { return properties.sharedMemPerBlockOptin; }

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
