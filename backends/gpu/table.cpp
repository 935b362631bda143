// The table of the C ABI on a toolchain's runtime.
#include <quire/call.h>
#include <quire/dtype.h>
#include <quire/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "plan.h"
#include "runtime.h"
#include "site.h"
#include "step.h"

namespace quire::gpu {

namespace {

// The message of the thread's last failure.
std::string& message() {
  thread_local std::string text;
  return text;
}
const char* last_error() { return message().c_str(); }

quire_status fail(quire_status status, std::string text) {
  message() = std::move(text);
  return status;
}

// Nothing is thrown across the table.
template <typename Body>
quire_status guarded(const Body& body) {
  try {
    body();
    return QUIRE_OK;
  } catch (const Failure& failure) {
    return fail(failure.status, failure.message);
  } catch (const Error& error) {
    return fail(static_cast<quire_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(QUIRE_UNAVAILABLE, "no memory on the host for a call's launches");
  } catch (const std::exception& error) {
    return fail(QUIRE_INTERNAL, error.what());
  } catch (...) {
    return fail(QUIRE_INTERNAL, "something was thrown that is no error");
  }
}

/// As much of a struct as its reader knows.
template <typename Struct>
void write(Struct full, Struct* to) {
  full.struct_size = std::min(to->struct_size, sizeof full);
  std::memcpy(to, &full, full.struct_size);
}

template <typename Handle>
void require_handle(const Handle* handle, const char* argument) {
  if (handle == nullptr) throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("{}: nothing; allowed: one that was created", argument)};
}

// ---- what and where ----

template <typename Predicate>
std::uint64_t dtypes_that(const Predicate& predicate) {
  std::uint64_t bits = 0;
  for (std::int32_t d = 0; d < QUIRE_DTYPE_COUNT; ++d) {
    if (predicate(static_cast<DType>(d))) bits |= std::uint64_t{1} << d;
  }
  return bits;
}

constexpr std::uint32_t build_bits() {
  std::uint32_t bits = 0;
#ifndef NDEBUG
  bits |= QUIRE_BUILD_DEBUG;
#endif
#if defined(__SANITIZE_ADDRESS__)
  bits |= QUIRE_BUILD_ASAN | QUIRE_BUILD_UBSAN;
#endif
#if defined(__SANITIZE_THREAD__)
  bits |= QUIRE_BUILD_TSAN;
#endif
  return bits;
}

quire_status describe(quire_backend_info* info) {
  return guarded([&] {
    write({sizeof *info, runtime::name(), "0.1.0", runtime::description(), dtypes_that([](DType) { return true; }),
           dtypes_that(is_compute_float), dtypes_that(is_state), runtime::rank(), build_bits(), runtime::driver()},
          info);
  });
}

quire_status device_count(std::int32_t* count) {
  *count = 0;
  return guarded([&] { *count = runtime::device_count(); });
}

quire_status device_info(std::int32_t ordinal, quire_device_info* info) {
  return guarded([&] {
    const std::int32_t count = runtime::device_count();
    if (ordinal < 0 || ordinal >= count)
      throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("ordinal: {}; allowed: 0 to {}", ordinal, count - 1)};
    const runtime::DeviceLimits& limits = runtime::limits(ordinal);
    write({sizeof *info, {runtime::device_type(), ordinal}, limits.name.c_str(), limits.memory_bytes, limits.reads_host ? 1 : 0}, info);
  });
}

// ---- memory, streams, events ----

// A stream's memory is its own device's.
void require_on(quire_device device, const quire_stream* stream) {
  require_device(device);
  if (stream == nullptr || runtime::device_of(stream) == device.id) return;
  throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("stream: one of device number {}; allowed: device number {}, as the memory",
                                                    runtime::device_of(stream), device.id)};
}

quire_status allocate(quire_device device, quire_stream* stream, std::size_t bytes, void** data) {
  *data = nullptr;
  return guarded([&] {
    require_on(device, stream);
    *data = runtime::allocate(device.id, stream, std::max<std::size_t>(bytes, 1));
  });
}

quire_status release(quire_device device, quire_stream* stream, void* data) {
  return guarded([&] {
    require_on(device, stream);
    if (data != nullptr) runtime::release(device.id, stream, data);
  });
}

quire_status copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, std::size_t bytes) {
  return guarded([&] {
    for (const quire_device device : {to_device, from_device}) {
      if (device.type != QUIRE_DEVICE_CPU) require_device(device);
    }
    if (bytes > 0) runtime::copy(stream, to, to_device, from, from_device, bytes);
  });
}

quire_status stream_create(quire_device device, quire_stream** stream) {
  *stream = nullptr;
  return guarded([&] {
    require_device(device);
    *stream = runtime::stream_create(device.id);
  });
}
quire_status stream_destroy(quire_stream* stream) {
  return guarded([&] {
    if (stream != nullptr) runtime::stream_destroy(stream);
  });
}
quire_status synchronize(quire_stream* stream) {
  return guarded([&] { runtime::synchronize(stream); });
}
quire_status event_create(quire_device device, quire_event** event) {
  *event = nullptr;
  return guarded([&] {
    require_device(device);
    *event = runtime::event_create(device.id);
  });
}
quire_status event_destroy(quire_event* event) {
  return guarded([&] {
    if (event != nullptr) runtime::event_destroy(event);
  });
}
quire_status event_record(quire_event* event, quire_stream* stream) {
  return guarded([&] {
    require_handle(event, "event");
    runtime::event_record(event, stream);
  });
}
quire_status event_wait(quire_event* event, quire_stream* stream) {
  return guarded([&] {
    require_handle(event, "event");
    runtime::event_wait(event, stream);
  });
}
quire_status event_synchronize(quire_event* event) {
  return guarded([&] {
    require_handle(event, "event");
    runtime::event_synchronize(event);
  });
}

// ---- calls ----

quire_status supports(quire_op op, const void* args) {
  return guarded([&] {
    require_args(op, args);
    const Call call(op, args);
    require_supported(call, site_of(call));
  });
}

quire_status workspace(quire_op op, const void* args, std::size_t* bytes) {
  *bytes = 0;
  return guarded([&] {
    require_args(op, args);
    const Call call(op, args);
    require_supported(call, site_of(call));
    *bytes = workspace_bytes(call);
  });
}

quire_status run(quire_stream* stream, quire_op op, const void* args, void* memory, std::size_t bytes) {
  return guarded([&] {
    require_args(op, args);
    const Call call(op, args);
    Site site = site_of(call);
    if (stream != nullptr) {
      const std::int32_t device = runtime::device_of(stream);
      if (!site.is_host && site.device != device) {
        throw Failure{QUIRE_INVALID_ARGUMENT,
                      fmt::format("stream: one of device number {}; allowed: device number {}, as the tensors", device, site.device)};
      }
      site.device = device;
    }
    require_supported(call, site);
    const std::size_t needed = workspace_bytes(call);
    if (bytes < needed || (needed > 0 && memory == nullptr)) {
      throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("workspace: {} bytes; allowed: {} or more", memory == nullptr ? 0 : bytes, needed)};
    }
    const std::vector<Launch> launches = plan(call, memory);
    if (!launches.empty()) runtime::launch(site.device, stream, launches);
  });
}

// Inputs are widened to float32, float64 ones rounded (u_product); sums and states are float32 (u_accumulate, u_store); every op goes token
// by token or column by column (chunk_length 1, decays multiplied), in an order that the token alone decides (batch_invariant). u_exp
// covers the worst of exp, log, log1p and tanh as their makers publish them, in units in the last place: CUDA 2, 1, 1, 2; HIP 1, 2, 1, 2
// over the ranges it tried; the C library under the emulator 1 and tanh 2. Such a unit is at most 2^-23 of the result: two are 2^-22.
quire_status contract(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) {
  return guarded([&] {
    if (op < 0 || op >= QUIRE_OP_COUNT) throw Failure{QUIRE_UNSUPPORTED, fmt::format("op {} is not known to this backend", op)};
    const bool rounds = op == QUIRE_OP_ATTEND || op == QUIRE_OP_GDN_PREFILL || op == QUIRE_OP_GDN_DECODE || op == QUIRE_OP_GDN_VERIFY;
    const double u = rounds ? 0x1p-24 : 0;
    write({sizeof *contract, u, u, u, rounds ? 0x1p-22 : 0, 0, 1, 1}, contract);
  });
}

// ---- steps ----

quire_status capture(quire_device device, const quire_call* calls, std::int32_t count, quire_step** step) {
  *step = nullptr;
  return guarded([&] {
    require_device(device);
    if (count < 1) throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("call_count: {}; allowed: 1 or more", count)};
    *step = std::make_unique<quire_step>(device.id, std::span(calls, static_cast<std::size_t>(count))).release();
  });
}

quire_status launch(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, std::int32_t count) {
  return guarded([&] {
    require_handle(step, "step");
    if (stream != nullptr && runtime::device_of(stream) != step->device()) {
      throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("stream: one of device number {}; allowed: device number {}, as the step",
                                                        runtime::device_of(stream), step->device())};
    }
    step->launch(stream, std::span(tensors, static_cast<std::size_t>(std::max(count, 0))));
  });
}

quire_status step_free(quire_step* step) {
  return guarded([&] { delete step; });
}

constexpr quire_backend_table the_table = {sizeof(quire_backend_table),
                                           QUIRE_ABI_VERSION,
                                           QUIRE_SEMANTICS_VERSION,
                                           describe,
                                           device_count,
                                           device_info,
                                           last_error,
                                           allocate,
                                           release,
                                           copy,
                                           stream_create,
                                           stream_destroy,
                                           synchronize,
                                           event_create,
                                           event_destroy,
                                           event_record,
                                           event_wait,
                                           event_synchronize,
                                           supports,
                                           workspace,
                                           run,
                                           contract,
                                           capture,
                                           launch,
                                           step_free};

}  // namespace

}  // namespace quire::gpu

// The one exported symbol. A host that speaks this version among others gets the table.
QUIRE_BACKEND_EXPORT const quire_backend_table* quire_backend_query(const quire_host*, std::uint32_t min_version, std::uint32_t max_version,
                                                                    const char** reason) {
  const std::uint32_t spoken = quire::gpu::the_table.abi_version;
  if (spoken >= min_version && spoken <= max_version) return &quire::gpu::the_table;
  static const std::string speaks = fmt::format("it speaks ABI version {}", QUIRE_ABI_VERSION);
  if (reason != nullptr) *reason = speaks.c_str();
  return nullptr;
}
