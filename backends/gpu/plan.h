// Planning: what a call at the ABI launches. Plain C++ without a toolchain; reads shapes and strides, never a tensor's data.
#pragma once

#include <quire/call.h>

#include "kernel.h"

#include <string>
#include <vector>

namespace quire::gpu {

/// Why a call of these dtypes, sizes and strides can't run; empty where it can. `shared_bytes`: what a block of the device may have.
std::string unsupported_reason(const Call& call, std::int64_t shared_bytes);

/// Bytes of device memory that the call needs beside its tensors; 0 for most. The call is one that can run.
std::size_t workspace_bytes(const Call& call);

/// The call's launches, each to be done before the next begins; none where there is nothing to do. The kernels and their number depend on
/// shapes, dtypes, strides and options alone, so another plan of a captured call differs in parameters only.
std::vector<Launch> plan(const Call& call, void* workspace);

}  // namespace quire::gpu
