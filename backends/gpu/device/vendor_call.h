// Calls of the vendor's runtime, their errors as Failure.
#pragma once

#include "../runtime.h"

#include "vendor.h"

namespace quire::gpu {

/// Raises the error of a call with the runtime's own words for it: "cudaFreeAsync: invalid argument (cudaErrorInvalidValue)". An error that
/// leaves the device usable is taken back from the thread, so that other users of the runtime in it do not meet it as theirs.
void require(VENDOR(Error_t) status, const char* call);

/// For what is given back on another error's way out: nothing is raised.
void ignore(VENDOR(Error_t) status);

}  // namespace quire::gpu

/// VENDOR_CALL(Malloc, &data, bytes)
#define VENDOR_CALL(name, ...) ::quire::gpu::require(VENDOR(name)(__VA_ARGS__), VENDOR_TEXT(name))
