// Streams and events.
#include "streams.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace quire::gpu {

namespace {

VENDOR(Stream_t) new_stream() {
  VENDOR(Stream_t) handle = nullptr;
  VENDOR_CALL(StreamCreateWithFlags, &handle, VENDOR(StreamNonBlocking));  // ordered by events only, never by the legacy default stream
  return handle;
}

// The idle streams of each device, as many as calls with null streams once ran at a time. They live as long as the process: at its end the
// runtime may be gone before this is.
struct IdleStreams {
  std::mutex mutex;
  std::map<std::int32_t, std::vector<VENDOR(Stream_t)>> of_device;
};
IdleStreams& idle_streams() {
  static IdleStreams& streams = *new IdleStreams;
  return streams;
}

VENDOR(Stream_t) take_idle(std::int32_t device) {
  IdleStreams& idle = idle_streams();
  {
    const std::lock_guard lock(idle.mutex);
    auto& streams = idle.of_device[device];
    if (!streams.empty()) {
      VENDOR(Stream_t) handle = streams.back();
      streams.pop_back();
      return handle;
    }
  }
  return new_stream();
}

void give_back(std::int32_t device, VENDOR(Stream_t) handle) noexcept {
  try {
    IdleStreams& idle = idle_streams();
    const std::lock_guard lock(idle.mutex);
    idle.of_device[device].push_back(handle);
  } catch (...) {
    ignore(VENDOR(StreamDestroy)(handle));
  }
}

}  // namespace

Work::Work(std::int32_t device, quire_stream* stream)
    : current_(device), device_(device), is_own_(stream == nullptr), handle_(is_own_ ? take_idle(device) : stream->handle) {}

Work::~Work() {
  if (!is_own_) return;
  // On an error's way out: what has begun ends before the caller may free its memory.
  if (!is_finished_) ignore(VENDOR(StreamSynchronize)(handle_));
  give_back(device_, handle_);
}

void Work::finish() {
  if (!is_own_) return;
  is_finished_ = true;
  VENDOR_CALL(StreamSynchronize, handle_);
}

namespace runtime {

quire_stream* stream_create(std::int32_t id) {
  const CurrentDevice current(id);
  auto stream = std::make_unique<quire_stream>(quire_stream{id, nullptr});
  stream->handle = new_stream();
  return stream.release();
}

// Late errors surface in synchronize and event_synchronize; here there is nobody to take them.
void stream_destroy(quire_stream* stream) {
  const std::unique_ptr<quire_stream> owner(stream);
  const CurrentDevice current(stream->device);
  ignore(VENDOR(StreamSynchronize)(stream->handle));
  ignore(VENDOR(StreamDestroy)(stream->handle));
}

void synchronize(quire_stream* stream) {
  if (stream == nullptr) return;  // its calls were done when they returned
  const CurrentDevice current(stream->device);
  VENDOR_CALL(StreamSynchronize, stream->handle);
}

std::int32_t device_of(const quire_stream* stream) { return stream->device; }

quire_event* event_create(std::int32_t id) {
  const CurrentDevice current(id);
  auto event = std::make_unique<quire_event>(quire_event{id, nullptr});
  VENDOR_CALL(EventCreateWithFlags, &event->handle, VENDOR(EventDisableTiming));
  return event.release();
}

void event_destroy(quire_event* event) {
  const std::unique_ptr<quire_event> owner(event);
  const CurrentDevice current(event->device);
  ignore(VENDOR(EventDestroy)(event->handle));
}

void event_record(quire_event* event, quire_stream* stream) {
  if (stream != nullptr && stream->device != event->device) {
    throw Failure{QUIRE_INVALID_ARGUMENT,
                  fmt::format("stream: one of device number {}; allowed: device number {}, as the event", stream->device, event->device)};
  }
  Work work(event->device, stream);  // a null stream's is idle, so the event is past at once
  VENDOR_CALL(EventRecord, event->handle, work.handle());
  work.finish();
}

void event_wait(quire_event* event, quire_stream* stream) {
  if (stream == nullptr) return event_synchronize(event);  // such a call is done when it returns
  const CurrentDevice current(stream->device);
  VENDOR_CALL(StreamWaitEvent, stream->handle, event->handle, 0);
}

void event_synchronize(quire_event* event) {
  const CurrentDevice current(event->device);
  VENDOR_CALL(EventSynchronize, event->handle);
}

}  // namespace runtime
}  // namespace quire::gpu
