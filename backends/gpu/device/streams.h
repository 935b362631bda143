// Streams of a device: the ABI's, and those that do the work of a null stream.
#pragma once

#include "current_device.h"

/// The ABI's handles.
struct quire_stream {
  std::int32_t device;
  VENDOR(Stream_t) handle;
};
struct quire_event {
  std::int32_t device;
  VENDOR(Event_t) handle;
};

namespace quire::gpu {

/// A call's place: the device is the current one, and `handle()` the stream that the call works in. For a null stream that is one of the
/// device's own, taken for this call alone, which therefore waits for nothing else; `finish` waits for its work.
class Work {
 public:
  Work(std::int32_t device, quire_stream* stream);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  VENDOR(Stream_t) handle() const { return handle_; }
  /// The last thing that a call does. Raises what went wrong in a null stream's work; another's late errors stay with it.
  void finish();

 private:
  CurrentDevice current_;
  std::int32_t device_;
  bool is_own_;
  bool is_finished_ = false;
  VENDOR(Stream_t) handle_ = nullptr;
};

}  // namespace quire::gpu
