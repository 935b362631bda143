// What a toolchain's runtime gives: devices, memory, streams, events, launches, graphs. CUDA, HIP and the emulator each implement it once;
// the table of the C ABI (table.cpp) is written on it.
#pragma once

#include <quire/backend.h>

#include "kernel.h"

#include <span>
#include <string>
#include <vector>

namespace quire::gpu {

/// What every function here throws; the table turns it into a status and last_error.
struct Failure {
  quire_status status = QUIRE_INTERNAL;
  std::string message;
};

namespace runtime {

/// "cuda", "hip" or "simt"; what it is in one line; driver and runtime with their versions, or what is missing. Live as long as the plugin.
const char* name();
const char* description();
const char* driver();
/// Of the default backend's choice (quire_backend_info).
std::int32_t rank();
/// DLPack's number of its devices.
std::int32_t device_type();

/// Raises QUIRE_UNAVAILABLE with the runtime's own text where there is no driver or no device.
std::int32_t device_count();

struct DeviceLimits {
  std::string name;
  std::int64_t memory_bytes = 0;
  std::int32_t warp_width = 32;
  std::int64_t shared_bytes = 0;  ///< per block
  std::int64_t blocks = 0;        ///< of a grid
  bool reads_host = false;
};
/// Of device 0 <= id < device_count(); kept after the first call.
const DeviceLimits& limits(std::int32_t id);

/// As the table's functions of these names. A null stream is synchronous.
void* allocate(std::int32_t id, quire_stream* stream, std::size_t bytes);
void release(std::int32_t id, quire_stream* stream, void* data);
void copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, std::size_t bytes);
quire_stream* stream_create(std::int32_t id);
void stream_destroy(quire_stream* stream);
void synchronize(quire_stream* stream);
std::int32_t device_of(const quire_stream* stream);
quire_event* event_create(std::int32_t id);
void event_destroy(quire_event* event);
void event_record(quire_event* event, quire_stream* stream);
void event_wait(quire_event* event, quire_stream* stream);
void event_synchronize(quire_event* event);

/// Launches one after another, each after the one before it is done. On a null stream they are done when this returns.
void launch(std::int32_t id, quire_stream* stream, std::span<const Launch> launches);

/// A captured sequence of launches on a device.
struct Graph;
Graph* graph_create(std::int32_t id, std::span<const Launch> launches);
/// Other parameters for the same kernels, for launches of the graph from now on.
void graph_update(Graph* graph, std::span<const Launch> launches);
void graph_launch(quire_stream* stream, Graph* graph);
void graph_destroy(Graph* graph);

}  // namespace runtime
}  // namespace quire::gpu
