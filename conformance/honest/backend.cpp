// The honest backend behind the C ABI.
#include "backend.h"

#include <quire/call.h>
#include <quire/dtype.h>
#include <quire/error.h>

#include "ops.h"

#include <cstring>
#include <new>
#include <string>

namespace quire::conformance::honest {

namespace {

std::string& message() {
  thread_local std::string text;
  return text;
}

quire_status fail(quire_status status, std::string text) {
  message() = std::move(text);
  return status;
}

void dispatch(quire_op op, const void* args, const Setting& setting) {
  switch (op) {
    case QUIRE_OP_POSITIONS: return positions(*static_cast<const quire_positions_args*>(args), setting);
    case QUIRE_OP_MASK: return mask(*static_cast<const quire_mask_args*>(args), setting);
    case QUIRE_OP_ADVANCE: return advance(*static_cast<const quire_advance_args*>(args), setting);
    case QUIRE_OP_EXTEND: return extend(*static_cast<const quire_extend_args*>(args), setting);
    case QUIRE_OP_ATTEND: return attend(*static_cast<const quire_attend_args*>(args), setting);
    case QUIRE_OP_GDN_PREFILL: return gdn_prefill(*static_cast<const quire_gdn_prefill_args*>(args), setting);
    case QUIRE_OP_GDN_DECODE: return gdn_decode(*static_cast<const quire_gdn_decode_args*>(args), setting);
    case QUIRE_OP_GDN_VERIFY: return gdn_verify(*static_cast<const quire_gdn_verify_args*>(args), setting);
    case QUIRE_OP_GDN_PREFILL_SLOTS: return gdn_prefill_slots(*static_cast<const quire_gdn_slots_args*>(args), setting);
    default: return gdn_decode_slots(*static_cast<const quire_gdn_slots_args*>(args), setting);
  }
}

template <typename Predicate>
std::uint64_t dtypes_that(const Predicate& predicate) {
  std::uint64_t bits = 0;
  for (std::int32_t d = 0; d < QUIRE_DTYPE_COUNT; ++d) {
    if (predicate(static_cast<DType>(d))) bits |= std::uint64_t{1} << d;
  }
  return bits;
}

quire_status device_count(std::int32_t* count) {
  *count = 1;
  return QUIRE_OK;
}
quire_status device_info(std::int32_t ordinal, quire_device_info* info) {
  if (ordinal != 0) return fail(QUIRE_INVALID_ARGUMENT, "ordinal: " + std::to_string(ordinal) + "; allowed: 0");
  *info = {sizeof *info, {QUIRE_DEVICE_CPU, 0}, "this machine's processor", 0, 1};
  return QUIRE_OK;
}
quire_status allocate(quire_device, quire_stream*, std::size_t bytes, void** data) {
  *data = ::operator new (bytes > 0 ? bytes : 1, std::align_val_t{64}, std::nothrow);
  return *data != nullptr ? QUIRE_OK : fail(QUIRE_UNAVAILABLE, "bytes: no memory for them");
}
quire_status free_memory(quire_device, quire_stream*, void* data) {
  ::operator delete (data, std::align_val_t{64});
  return QUIRE_OK;
}
quire_status copy(quire_stream*, void* to, quire_device, const void* from, quire_device, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return QUIRE_OK;
}

// Calls are done when they return: a stream and an event have nothing to hold.
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
quire_status workspace(quire_op, const void*, std::size_t* bytes) {
  *bytes = 0;
  return QUIRE_OK;
}
quire_status capture(quire_device, const quire_call*, std::int32_t, quire_step**) {
  return fail(QUIRE_UNSUPPORTED, "no steps are captured here");
}
quire_status launch(quire_stream*, quire_step*, const quire_tensor* const*, std::int32_t) {
  return fail(QUIRE_UNSUPPORTED, "no steps are captured here");
}
quire_status step_free(quire_step*) { return QUIRE_OK; }

quire_status describe_honest(quire_backend_info* info) { return describe_as("honest-f32", "the laws in float32, token by token", info); }
quire_status run_honest(quire_stream*, quire_op op, const void* args, void*, std::size_t) { return honest_run(op, args, {}); }
quire_status contract_honest(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) { return contract_of({}, op, contract); }

}  // namespace

const char* last_message() { return message().c_str(); }

quire_status run_with(quire_op op, const void* args, const Setting& setting) {
  if (const quire_status status = supports_host(op, args); status != QUIRE_OK) return status;
  try {
    dispatch(op, args, setting);
    return QUIRE_OK;
  } catch (const Error& error) {
    return fail(static_cast<quire_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(QUIRE_INTERNAL, "no memory for float32 working copies");
  } catch (const std::exception& error) {
    return fail(QUIRE_INTERNAL, error.what());
  }
}

quire_status describe_as(const char* name, const char* description, quire_backend_info* info) {
  const std::size_t size = info->struct_size < sizeof *info ? info->struct_size : sizeof *info;
  const quire_backend_info full{
      size, name, "0.1.0", description, dtypes_that([](DType) { return true; }), dtypes_that(is_compute_float), dtypes_that(is_state),
      -1,   0, nullptr};
  std::memcpy(info, &full, size);
  return QUIRE_OK;
}

quire_status supports_host(quire_op op, const void* args) {
  if (op < 0 || op >= QUIRE_OP_COUNT) return fail(QUIRE_UNSUPPORTED, "op " + std::to_string(op) + " is not known here");
  const Call call(op, args);
  for (const CallTensor& entry : call.tensors()) {
    if (entry.tensor->device.type != QUIRE_DEVICE_CPU) return fail(QUIRE_UNSUPPORTED, "tensors must lie on the host");
  }
  return QUIRE_OK;
}

quire_status contract_of(const HonestOptions& options, quire_op op, quire_contract* contract) {
  if (op < 0 || op >= QUIRE_OP_COUNT) return fail(QUIRE_UNSUPPORTED, "op " + std::to_string(op) + " is not known here");
  const bool exact = op != QUIRE_OP_ATTEND && op != QUIRE_OP_GDN_PREFILL && op != QUIRE_OP_GDN_DECODE && op != QUIRE_OP_GDN_VERIFY;
  *contract = exact ? quire_contract{sizeof *contract, 0, 0, 0, 0, 0, 1, 1} : honest_contract(options, op);
  return QUIRE_OK;
}

quire_backend_table host_table(Describe describe, Supports supports, Run run, Contract contract) {
  return {sizeof(quire_backend_table),
          QUIRE_ABI_VERSION,
          QUIRE_SEMANTICS_VERSION,
          describe,
          device_count,
          device_info,
          last_message,
          allocate,
          free_memory,
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
}

}  // namespace quire::conformance::honest

namespace quire::conformance {

quire_status honest_run(quire_op op, const void* args, const HonestOptions& options) {
  return honest::run_with(op, args, {options, honest::Fault::none});
}

double roundoff(HonestOptions::Format format) {
  switch (format) {
    case HonestOptions::Format::tf32:
    case HonestOptions::Format::half: return 0x1p-11;
    case HonestOptions::Format::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

quire_contract honest_contract(const HonestOptions& options, quire_op op) {
  constexpr double u = 0x1p-24;
  const bool chunked = options.recurrence == HonestOptions::Recurrence::chunked && op == QUIRE_OP_GDN_PREFILL;
  // exp and its kin come from the C library, within one unit in the last place.
  return {sizeof(quire_contract),
          roundoff(options.products),
          u,
          roundoff(options.stored),
          2 * u,
          chunked && options.decay_from_log_sums ? 1 : 0,
          chunked ? options.chunk_length : 1,
          1};
}

const quire_backend_table* honest_backend() {
  static const quire_backend_table table =
      honest::host_table(honest::describe_honest, honest::supports_host, honest::run_honest, honest::contract_honest);
  return &table;
}

}  // namespace quire::conformance
