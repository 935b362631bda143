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

using host::fail;

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

quire_status describe_honest(quire_backend_info* info) { return describe_as("honest-f32", "the laws in float32, token by token", info); }
quire_status run_honest(quire_stream*, quire_op op, const void* args, void*, std::size_t) { return honest_run(op, args, {}); }
quire_status contract_honest(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) { return contract_of({}, op, contract); }

}  // namespace

quire_status run_with(quire_op op, const void* args, const Setting& setting) {
  if (const quire_status status = supports_host(op, args); status != QUIRE_OK) return status;
  return host::guarded([&] { dispatch(op, args, setting); });
}

quire_status describe_as(const char* name, const char* description, quire_backend_info* info) {
  host::write_info<quire_backend_info>({
      sizeof *info, name, "0.1.0", description, dtypes_that([](DType) { return true; }), dtypes_that(is_compute_float), dtypes_that(is_state),
      -1,   0, nullptr}, info);
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
      honest::host_table<honest::describe_honest, honest::supports_host, honest::run_honest, honest::contract_honest>();
  return &table;
}

}  // namespace quire::conformance
