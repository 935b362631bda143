// Each device's pool of memory.
#pragma once

#include "vendor_call.h"

namespace quire::gpu {

/// The plugin's own pool of a device, null where the device has no pools. Not the process's default one, whose settings are its owner's.
VENDOR(MemPool_t) pool_of(std::int32_t device);

/// Lets a device reach another's memory, the other's pool too, where the machine can. Without it copies between them go by way of the host.
void connect(std::int32_t device, std::int32_t other);

}  // namespace quire::gpu
