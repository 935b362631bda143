// A launch under the emulator: its blocks over workers, the first fault its end.
#pragma once

#include "../gpu/kernel.h"
#include "settings.h"

namespace quire::simt {

constexpr std::int64_t most_shared_bytes = 48 * 1024;

/// Throws gpu::Failure QUIRE_INTERNAL for a launch that no GPU would take: threads that are no multiple of 64 or more than the kernels'
/// bounds, shared memory over the limit.
void require_launchable(const gpu::Launch& launch);

/// Runs it; returns when it is done. Throws gpu::Failure QUIRE_INTERNAL with the fault of the least block known to have one.
void run(const Settings& settings, const gpu::Launch& launch);

}  // namespace quire::simt
