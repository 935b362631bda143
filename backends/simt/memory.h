// The virtual devices' memory: on the host, and registered, so that a pointer of another device or of none is found out.
#pragma once

#include <quire/backend.h>

#include <cstddef>
#include <cstdint>

namespace quire::simt {

/// Bytes of the machine's memory, 0 where unknown: what each device says that it has.
std::int64_t machine_memory();

/// Aligned to 256 bytes. Small memory is filled with 0xFF; of large memory a page that nobody touches costs nothing, and pages that trap
/// lie beside it. Throws gpu::Failure QUIRE_UNAVAILABLE.
void* allocate_memory(int device, std::size_t bytes);

/// From here on no call may name it; its bytes stay until `free_released`. Throws gpu::Failure QUIRE_INVALID_ARGUMENT for what
/// `allocate_memory` did not give for this device, or what has been released before.
void release_memory(int device, void* data);
void free_released(void* data);

/// Throws gpu::Failure QUIRE_INVALID_ARGUMENT unless the bytes lie in one allocation of the device, or, for the host, in none. `what` names
/// the argument.
void require_memory(const char* what, quire_device device, const void* data, std::size_t bytes);

}  // namespace quire::simt
