// The reference behind the C ABI: what it is, what it supports, and how a call reaches its function.
#include <quire/dtype.h>
#include <quire/host_backend.h>

#include "backend.h"
#include "kernels.h"
#include "ops.h"
#include "parallel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <string>

namespace quire::reference {

namespace {

using host::fail;
using host::guarded;

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
    host::write_info<quire_backend_info>({sizeof *info, "reference", "0.1.0", kept(std::move(description)), dtypes_that([](DType) { return true; }),
                                  dtypes_that(is_compute_float), dtypes_that(is_state), 0, build_bits(), nullptr}, info);
  });
}

quire_status device_info(std::int32_t ordinal, quire_device_info* info) {
  return host::device_info(ordinal, info, static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE)));
}

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

quire_status run_now(quire_op op, const void* args) { return run(nullptr, op, args, nullptr, 0); }

quire_status capture(quire_device, const quire_call* calls, std::int32_t count, quire_step** step) { return host::capture(calls, count, step, supports); }

quire_status launch(quire_stream*, quire_step* step, const quire_tensor* const* tensors, std::int32_t count) {
  return host::launch(step, tensors, count, run_now);
}

constexpr quire_backend_table table = {sizeof(quire_backend_table), QUIRE_ABI_VERSION, QUIRE_SEMANTICS_VERSION,
                                       describe, host::device_count, device_info, host::last_error,
                                       host::allocate, host::release, host::copy,
                                       host::stream_create, host::stream_destroy, host::synchronize,
                                       host::event_create, host::event_destroy, host::event_record, host::event_wait, host::event_synchronize,
                                       supports, host::no_workspace, run, contract,
                                       capture, launch, host::step_free};

}  // namespace

const quire_backend_table* query(const quire_host*, std::uint32_t min_version, std::uint32_t max_version, const char** reason) {
  const std::uint32_t spoken = table.abi_version;
  if (spoken >= min_version && spoken <= max_version) return &table;
  static const std::string speaks = fmt::format("it speaks ABI version {}", QUIRE_ABI_VERSION);
  *reason = speaks.c_str();
  return nullptr;
}

}  // namespace quire::reference
