// Devices, as the runtime's other parts ask for them.
#pragma once

#include "vendor_call.h"

namespace quire::gpu {

/// Whether the plugin holds code for a device, and for which architectures it does: "80-real 90a-real". Each toolchain's own.
bool has_code_for(std::int32_t id);
const char* architectures();
/// "sm_90": what the device is among those.
std::string architecture_of(std::int32_t id);

/// A device's attribute.
int attribute(vendor::Attribute name, std::int32_t id);

}  // namespace quire::gpu
