// The runtime of gpu/runtime.h on virtual devices of this machine: memory, streams and events as a GPU has them, kernels under the
// emulator.
#include "../gpu/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "launch.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace quire::gpu::runtime {
namespace {

using simt::Settings;
using simt::settings;

// The ABI's streams and events are these; its own types stay incomplete.
simt::Stream& of(quire_stream* stream) { return *reinterpret_cast<simt::Stream*>(stream); }
simt::Event& of(quire_event* event) {
  if (event == nullptr) throw Failure{QUIRE_INVALID_ARGUMENT, "event: null"};
  return *reinterpret_cast<simt::Event*>(event);
}

void require_device(const char* what, std::int32_t id) {
  const int devices = settings().devices;
  if (id < 0 || id >= devices) throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("{}: device {}; allowed: 0 to {}", what, id, devices - 1)};
}

void require_device(const char* what, quire_device device) {
  if (device.type == QUIRE_DEVICE_CPU) return static_cast<void>(settings());
  if (device.type != QUIRE_DEVICE_EXTENSION)
    throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("{}: a device of type {}; allowed: {} (the host), {} (simt's)", what, device.type,
                                                      static_cast<int>(QUIRE_DEVICE_CPU), static_cast<int>(QUIRE_DEVICE_EXTENSION))};
  require_device(what, device.id);
}

void require_stream_of(const char* what, std::int32_t id, quire_stream* stream) {
  require_device(what, id);
  if (stream != nullptr && of(stream).device() != id)
    throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("{}: device {}, but the stream is of device {}", what, id, of(stream).device())};
}

using Launches = std::shared_ptr<const std::vector<Launch>>;

Launches copy_of(std::span<const Launch> launches) {
  for (const Launch& launch : launches) simt::require_launchable(launch);
  return std::make_shared<const std::vector<Launch>>(launches.begin(), launches.end());
}

void run_all(std::span<const Launch> launches) {
  for (const Launch& launch : launches) simt::run(settings(), launch);
}

std::string describe() {
  try {
    return "SIMT emulator on the processor: " + simt::in_words(settings());
  } catch (const Failure& failure) {
    return "SIMT emulator on the processor: " + failure.message;
  }
}

std::array<DeviceLimits, Settings::most_devices> make_limits() {
  std::array<DeviceLimits, Settings::most_devices> all;
  for (std::size_t id = 0; id < all.size(); ++id)
    all[id] = {
        fmt::format("SIMT emulator {}", id), simt::machine_memory(), settings().warp_width, simt::most_shared_bytes, settings().grid, true};
  return all;
}

}  // namespace

const char* name() { return "simt"; }

const char* description() {
  static const std::string text = describe();
  return text.c_str();
}

const char* driver() { return nullptr; }
std::int32_t rank() { return -1; }
std::int32_t device_type() { return QUIRE_DEVICE_EXTENSION; }
std::int32_t device_count() { return settings().devices; }

const DeviceLimits& limits(std::int32_t id) {
  require_device("limits", id);
  static const auto all = make_limits();
  return all[static_cast<std::size_t>(id)];
}

void* allocate(std::int32_t id, quire_stream* stream, std::size_t bytes) {
  require_stream_of("allocate", id, stream);
  return simt::allocate_memory(id, bytes);
}

void release(std::int32_t id, quire_stream* stream, void* data) {
  require_device("free", id);
  if (data == nullptr) return;
  simt::release_memory(id, data);
  if (stream == nullptr)
    simt::free_released(data);
  else
    of(stream).submit_always([data] { simt::free_released(data); });
}

void copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, std::size_t bytes) {
  require_device("to", to_device);
  require_device("from", from_device);
  simt::require_memory("to", to_device, to, bytes);
  simt::require_memory("from", from_device, from, bytes);
  const auto move = [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
  };
  if (stream == nullptr)
    move();
  else
    of(stream).submit(move);
}

quire_stream* stream_create(std::int32_t id) {
  require_device("stream", id);
  return reinterpret_cast<quire_stream*>(new simt::Stream(id));
}

void stream_destroy(quire_stream* stream) { delete reinterpret_cast<simt::Stream*>(stream); }

void synchronize(quire_stream* stream) {
  if (stream != nullptr) of(stream).synchronize();
}

std::int32_t device_of(const quire_stream* stream) { return reinterpret_cast<const simt::Stream*>(stream)->device(); }

quire_event* event_create(std::int32_t id) {
  require_device("event", id);
  return reinterpret_cast<quire_event*>(new simt::Event(id));
}

void event_destroy(quire_event* event) { delete reinterpret_cast<simt::Event*>(event); }

void event_record(quire_event* event, quire_stream* stream) {
  require_stream_of("event", of(event).device(), stream);
  of(event).record(stream == nullptr ? nullptr : of(stream).record());
}

void event_wait(quire_event* event, quire_stream* stream) {
  auto point = of(event).last();
  if (point == nullptr) return;
  if (stream == nullptr)
    point->wait();
  else
    of(stream).wait_for(std::move(point));
}

void event_synchronize(quire_event* event) {
  const auto point = of(event).last();
  if (point == nullptr) return;
  if (const auto error = point->wait()) error->tell();
}

void launch(std::int32_t id, quire_stream* stream, std::span<const Launch> launches) {
  require_stream_of("launch", id, stream);
  if (stream == nullptr) return run_all(launches);
  of(stream).submit([all = copy_of(launches)] { run_all(*all); });
}

struct Graph {
  std::int32_t device;
  Launches launches;
};

Graph* graph_create(std::int32_t id, std::span<const Launch> launches) {
  require_device("graph", id);
  return new Graph{id, copy_of(launches)};
}

void graph_update(Graph* graph, std::span<const Launch> launches) {
  const auto same_kernel = [](const Launch& a, const Launch& b) { return a.kernel.entry == b.kernel.entry; };
  if (!std::equal(launches.begin(), launches.end(), graph->launches->begin(), graph->launches->end(), same_kernel))
    throw Failure{QUIRE_INTERNAL, "graph_update: other kernels than the graph's"};
  graph->launches = copy_of(launches);
}

void graph_launch(quire_stream* stream, Graph* graph) {
  require_stream_of("graph", graph->device, stream);
  if (stream == nullptr) return run_all(*graph->launches);
  of(stream).submit([all = graph->launches] { run_all(*all); });
}

void graph_destroy(Graph* graph) { delete graph; }

}  // namespace quire::gpu::runtime
