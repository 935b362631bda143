// The reference behind the C ABI: what it is, what it supports, and how a call reaches its function.
#include <quire/call.h>
#include <quire/dtype.h>
#include <quire/error.h>

#include "backend.h"
#include "kernels.h"
#include "ops.h"
#include "parallel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>

namespace quire::reference {

namespace {

// The message of the thread's last failure.
std::string& message() {
  thread_local std::string text;
  return text;
}

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
  } catch (const Error& error) {
    return fail(static_cast<quire_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(QUIRE_UNAVAILABLE, "no memory for the reference's float64 working copies");
  } catch (const std::exception& error) {
    return fail(QUIRE_INTERNAL, error.what());
  }
}

const char* last_error() { return message().c_str(); }

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

template <typename Predicate>
std::uint64_t dtypes_that(const Predicate& predicate) {
  std::uint64_t bits = 0;
  for (std::int32_t d = 0; d < QUIRE_DTYPE_COUNT; ++d) {
    if (predicate(static_cast<DType>(d))) bits |= std::uint64_t{1} << d;
  }
  return bits;
}

// Descriptions live as long as the process: each different one is kept once.
const char* kept(std::string text) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts->insert(std::move(text)).first->c_str();
}

quire_status describe(quire_backend_info* info) {
  return guarded([&] {
    std::string description;
    try {
      description = fmt::format("the laws in float64, the same bits everywhere ({}, {} threads on {})", kernels().name, thread_count(), parallel_name());
    } catch (const Error& error) {  // a setting that is wrong: every call will say so
      description = fmt::format("the laws in float64; no call can run: {}", error.what());
    }
    const std::size_t size = info->struct_size < sizeof *info ? info->struct_size : sizeof *info;
    const quire_backend_info full{size, "reference", "0.1.0", kept(std::move(description)), dtypes_that([](DType) { return true; }),
                                  dtypes_that(is_compute_float), dtypes_that(is_state), 0, build_bits(), nullptr};
    std::memcpy(info, &full, size);
  });
}

quire_status device_count(std::int32_t* count) {
  *count = 1;
  return QUIRE_OK;
}

quire_status device_info(std::int32_t ordinal, quire_device_info* info) {
  if (ordinal != 0) return fail(QUIRE_INVALID_ARGUMENT, fmt::format("ordinal: {}; allowed: 0", ordinal));
  const std::int64_t memory = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
  *info = {sizeof *info, {QUIRE_DEVICE_CPU, 0}, "this machine's processor", memory, 1};
  return QUIRE_OK;
}

quire_status allocate(quire_device, quire_stream*, std::size_t bytes, void** data) {
  *data = ::operator new(bytes > 0 ? bytes : 1, std::align_val_t{64}, std::nothrow);
  return *data != nullptr ? QUIRE_OK : fail(QUIRE_UNAVAILABLE, fmt::format("bytes: {}; no memory for them", bytes));
}

quire_status free_memory(quire_device, quire_stream*, void* data) {
  ::operator delete(data, std::align_val_t{64});
  return QUIRE_OK;
}

quire_status copy(quire_stream*, void* to, quire_device, const void* from, quire_device, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return QUIRE_OK;
}

// A stream of a CPU is the calling thread: every call is done when it returns, so a stream and an event have nothing to hold.
char the_stream, the_event;
quire_status stream_create(quire_device, quire_stream** stream) {
  *stream = reinterpret_cast<quire_stream*>(&the_stream);
  return QUIRE_OK;
}
quire_status stream_destroy(quire_stream*) { return QUIRE_OK; }
quire_status synchronize(quire_stream*) { return QUIRE_OK; }
quire_status event_create(quire_device, quire_event** event) {
  *event = reinterpret_cast<quire_event*>(&the_event);
  return QUIRE_OK;
}
quire_status event_destroy(quire_event*) { return QUIRE_OK; }
quire_status event_record(quire_event*, quire_stream*) { return QUIRE_OK; }
quire_status event_wait(quire_event*, quire_stream*) { return QUIRE_OK; }
quire_status event_synchronize(quire_event*) { return QUIRE_OK; }

bool on_host(quire_op op, const void* args) {
  const Call call(op, args);
  for (const CallTensor& entry : call.tensors()) {
    if (entry.tensor->device.type != QUIRE_DEVICE_CPU) return false;
  }
  return true;
}

// Every law, every dtype, every layout; only not what lies on a device.
quire_status supports(quire_op op, const void* args) {
  if (op < 0 || op >= QUIRE_OP_COUNT) return fail(QUIRE_UNSUPPORTED, fmt::format("op {} is not known to the reference", op));
  if (!on_host(op, args)) return fail(QUIRE_UNSUPPORTED, "the reference computes on the host; move the tensors there");
  return QUIRE_OK;
}

quire_status workspace(quire_op, const void*, std::size_t* bytes) {
  *bytes = 0;
  return QUIRE_OK;
}

quire_status run(quire_stream*, quire_op op, const void* args, void*, std::size_t) {
  if (const quire_status status = supports(op, args); status != QUIRE_OK) return status;
  return guarded([&] {
    kernels();  // a wrong setting fails every call alike, also those that use no kernel or thread
    thread_count();
    switch (op) {
      case QUIRE_OP_POSITIONS: return positions(*static_cast<const quire_positions_args*>(args));
      case QUIRE_OP_MASK: return mask(*static_cast<const quire_mask_args*>(args));
      case QUIRE_OP_ADVANCE: return advance(*static_cast<const quire_advance_args*>(args));
      case QUIRE_OP_EXTEND: return extend(*static_cast<const quire_extend_args*>(args));
      case QUIRE_OP_ATTEND: return attend(*static_cast<const quire_attend_args*>(args));
      case QUIRE_OP_GDN_PREFILL: return gdn_prefill(*static_cast<const quire_gdn_prefill_args*>(args));
      case QUIRE_OP_GDN_DECODE: return gdn_decode(*static_cast<const quire_gdn_decode_args*>(args));
      case QUIRE_OP_GDN_VERIFY: return gdn_verify(*static_cast<const quire_gdn_verify_args*>(args));
      case QUIRE_OP_GDN_PREFILL_SLOTS: return gdn_prefill_slots(*static_cast<const quire_gdn_slots_args*>(args));
      default: return gdn_decode_slots(*static_cast<const quire_gdn_slots_args*>(args));
    }
  });
}

// Float64 throughout, one rounding at the end: inputs are widened exactly.
quire_status contract(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) {
  if (op < 0 || op >= QUIRE_OP_COUNT) return fail(QUIRE_UNSUPPORTED, fmt::format("op {} is not known to the reference", op));
  const bool exact = op != QUIRE_OP_ATTEND && op != QUIRE_OP_GDN_PREFILL && op != QUIRE_OP_GDN_DECODE && op != QUIRE_OP_GDN_VERIFY;
  const double u = exact ? 0.0 : 0x1p-53;
  *contract = {sizeof *contract, u, u, 0.0, exact ? 0.0 : 0x1p-53, 0, 1, 1};
  return QUIRE_OK;
}

quire_status capture(quire_device, const quire_call*, std::int32_t, quire_step**) {
  return fail(QUIRE_UNSUPPORTED, "the reference captures no steps");
}
quire_status launch(quire_stream*, quire_step*, const quire_tensor* const*, std::int32_t) {
  return fail(QUIRE_UNSUPPORTED, "the reference captures no steps");
}
quire_status step_free(quire_step*) { return QUIRE_OK; }

constexpr quire_backend_table table = {sizeof(quire_backend_table), QUIRE_ABI_VERSION, QUIRE_SEMANTICS_VERSION,
                                       describe,     device_count,  device_info,    last_error,   allocate,     free_memory,
                                       copy,         stream_create, stream_destroy, synchronize,  event_create, event_destroy,
                                       event_record, event_wait,    event_synchronize, supports,    workspace,    run,          contract,
                                       capture,      launch,        step_free};

}  // namespace

const quire_backend_table* query(const quire_host*, std::uint32_t min_version, std::uint32_t max_version, const char** reason) {
  const std::uint32_t spoken = table.abi_version;
  if (spoken >= min_version && spoken <= max_version) return &table;
  static const std::string speaks = fmt::format("it speaks ABI version {}", QUIRE_ABI_VERSION);
  *reason = speaks.c_str();
  return nullptr;
}

}  // namespace quire::reference
