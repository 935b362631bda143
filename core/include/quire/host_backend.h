// Plumbing for backends that compute on the host's memory, every call done when it returns: memory, streams, events and captured steps.
// For backends in C++ that lie in this tree; a plugin needs backend.h alone (backends/template).
#pragma once

#include <quire/call.h>
#include <quire/error.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace quire::host {

/// The message of the calling thread's last failure.
inline std::string& message() {
  thread_local std::string text;
  return text;
}

inline quire_status fail(quire_status status, std::string text) {
  message() = std::move(text);
  return status;
}

inline const char* last_error() { return message().c_str(); }

/// Runs body; what it throws becomes a status.
template <typename Body>
quire_status guarded(const Body& body) {
  try {
    body();
    return QUIRE_OK;
  } catch (const Error& error) {
    return fail(static_cast<quire_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(QUIRE_UNAVAILABLE, "no memory for working copies");
  } catch (const std::exception& error) {
    return fail(QUIRE_INTERNAL, error.what());
  }
}

/// A description struct as far as its reader knows it.
template <typename Info>
void write_info(Info full, Info* info) {
  full.struct_size = std::min(info->struct_size, sizeof full);
  std::memcpy(info, &full, full.struct_size);
}

inline quire_status device_count(std::int32_t* count) {
  *count = 1;
  return QUIRE_OK;
}

inline quire_status device_info(std::int32_t ordinal, quire_device_info* info, std::int64_t memory_bytes) {
  if (ordinal != 0) return fail(QUIRE_INVALID_ARGUMENT, "ordinal: " + std::to_string(ordinal) + "; allowed: 0");
  write_info({sizeof *info, {QUIRE_DEVICE_CPU, 0}, "this machine's processor", memory_bytes, 1}, info);
  return QUIRE_OK;
}

// ---- memory ----

inline quire_status allocate(quire_device, quire_stream*, std::size_t bytes, void** data) {
  *data = ::operator new(bytes > 0 ? bytes : 1, std::align_val_t{64}, std::nothrow);
  return *data != nullptr ? QUIRE_OK : fail(QUIRE_UNAVAILABLE, "bytes: " + std::to_string(bytes) + "; no memory for them");
}

inline quire_status release(quire_device, quire_stream*, void* data) {
  ::operator delete(data, std::align_val_t{64});
  return QUIRE_OK;
}

inline quire_status copy(quire_stream*, void* to, quire_device, const void* from, quire_device, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return QUIRE_OK;
}

// ---- streams and events: every call is done when it returns, so they have nothing to hold ----

inline char the_stream, the_event;

inline quire_status stream_create(quire_device, quire_stream** stream) {
  *stream = reinterpret_cast<quire_stream*>(&the_stream);
  return QUIRE_OK;
}
inline quire_status stream_destroy(quire_stream*) { return QUIRE_OK; }
inline quire_status synchronize(quire_stream*) { return QUIRE_OK; }
inline quire_status event_create(quire_device, quire_event** event) {
  *event = reinterpret_cast<quire_event*>(&the_event);
  return QUIRE_OK;
}
inline quire_status event_destroy(quire_event*) { return QUIRE_OK; }
inline quire_status event_record(quire_event*, quire_stream*) { return QUIRE_OK; }
inline quire_status event_wait(quire_event*, quire_stream*) { return QUIRE_OK; }
inline quire_status event_synchronize(quire_event*) { return QUIRE_OK; }
inline quire_status no_workspace(quire_op, const void*, std::size_t* bytes) {
  *bytes = 0;
  return QUIRE_OK;
}

// ---- captured steps: copies of the calls, whose tensors are put elsewhere at each launch ----

struct HostStep {
  std::deque<Call> calls;  // addresses stay
  std::deque<quire_tensor*> tensors;
};

/// `supports` is the backend's own.
inline quire_status capture(const quire_call* calls, std::int32_t count, quire_step** step, quire_status (*supports)(quire_op, const void*)) {
  *step = nullptr;
  for (std::int32_t n = 0; n < count; ++n) {
    if (const quire_status status = supports(calls[n].op, calls[n].args); status != QUIRE_OK) return status;
  }
  return guarded([&] {
    auto made = std::make_unique<HostStep>();
    for (std::int32_t n = 0; n < count; ++n) {
      const Call& call = made->calls.emplace_back(calls[n].op, calls[n].args);
      for (const CallTensor& entry : call.tensors()) made->tensors.push_back(entry.tensor);
    }
    *step = reinterpret_cast<quire_step*>(made.release());
  });
}

/// What a launch's tensor may not be; empty where it may stand for the captured one.
inline std::string tensor_fault(const quire_tensor& captured, const quire_tensor& given) {
  const auto axes = static_cast<std::size_t>(captured.rank);
  if (captured.dtype != given.dtype) return "another dtype";
  if (captured.rank != given.rank || !std::equal(captured.shape, captured.shape + axes, given.shape)) return "another shape";
  if (!std::equal(captured.strides, captured.strides + axes, given.strides)) return "other strides";
  if (captured.device.type != given.device.type || captured.device.id != given.device.id) return "another device";
  return {};
}

/// `run` is the backend's own.
inline quire_status launch(quire_step* step, const quire_tensor* const* tensors, std::int32_t count, quire_status (*run)(quire_op, const void*)) {
  auto& host_step = *reinterpret_cast<HostStep*>(step);
  if (static_cast<std::size_t>(count) != host_step.tensors.size()) {
    return fail(QUIRE_INVALID_ARGUMENT, "tensors: " + std::to_string(count) + " of them; allowed: the step's " + std::to_string(host_step.tensors.size()));
  }
  for (std::size_t n = 0; n < host_step.tensors.size(); ++n) {
    if (const std::string fault = tensor_fault(*host_step.tensors[n], *tensors[n]); !fault.empty()) {
      return fail(QUIRE_INVALID_ARGUMENT, "tensors: number " + std::to_string(n) + " has " + fault + "; allowed: as captured");
    }
  }
  for (std::size_t n = 0; n < host_step.tensors.size(); ++n) host_step.tensors[n]->data = tensors[n]->data;
  for (const Call& call : host_step.calls) {
    if (const quire_status status = run(call.op(), call.args()); status != QUIRE_OK) return status;
  }
  return QUIRE_OK;
}

inline quire_status step_free(quire_step* step) {
  delete reinterpret_cast<HostStep*>(step);
  return QUIRE_OK;
}

}  // namespace quire::host
