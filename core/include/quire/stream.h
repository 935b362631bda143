// Streams, events and memory of a backend's devices (architecture: the C ABI).
//
// Work on one stream runs in the order given; streams are ordered against each other by events only. What an op on a stream was given, and
// what it returns, must stay alive and unread until the stream has passed: synchronize it, or wait for an event recorded behind the op.
// Errors of work that was still to run are raised by the next synchronize. One thread at a time uses a stream.
#pragma once

#include <quire/registry.h>
#include <quire/tensor.h>

#include <memory>
#include <span>

namespace quire {

/// A queue of work on a device. Moves, and does not copy. Going out of scope waits for its work.
class Stream {
 public:
  /// A stream of the device, the backend's first where none is named. Raises invalid_argument (`device`) for another backend's.
  explicit Stream(const Backend& backend);
  Stream(const Backend& backend, Device device);

  const Backend& backend() const { return *state_->backend; }
  Device device() const { return state_->device; }
  quire_stream* get() const { return state_->handle; }
  /// Waits for the work given so far; raises what went wrong in it.
  void synchronize() const;

  /// The stream as memory that is freed in its order keeps it.
  struct State {
    State(const Backend& of, Device on);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    const Backend* backend;
    Device device;
    quire_stream* handle = nullptr;
  };
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// A place in a stream that others wait for. Never recorded, nobody waits for it.
class Event {
 public:
  explicit Event(const Backend& backend);
  Event(const Backend& backend, Device device);

  /// From now on it stands behind what the stream was given so far. Raises invalid_argument (`stream`) for another backend's, as `wait` does.
  void record(const Stream& stream);
  /// What the stream is given from now on waits for it; the stream may be another device's.
  void wait(const Stream& stream) const;
  /// The host waits; raises what went wrong before it.
  void synchronize() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// New memory on a backend's device (or the host), its contents unspecified; with a stream, given and freed in its order. Raises
/// invalid_argument (`device`) for a device that the backend has not, else as Tensor::empty.
Tensor empty_on(const Backend& backend, Device device, DType dtype, Shape shape, const Stream* stream = nullptr, std::string_view argument = "shape");

/// A copy on another device or the host, with the same strides. The backend is the one whose device is involved. With a stream the
/// copy runs in its order and both memories must stay until it has passed; `tensor` may be read before that only by the stream.
Tensor copy_to(const Tensor& tensor, const Backend& backend, Device device, const Stream* stream = nullptr);

/// The loaded backend that has this device. Raises unavailable (`devices`).
const Backend& backend_of(Device device);

/// "the host" or "device type 12 number 0".
std::string to_string(Device device);

}  // namespace quire
