// Where a call's tensors lie, and whether this backend runs it there.
#include "site.h"

#include <fmt/format.h>

#include "plan.h"
#include "runtime.h"

namespace quire::gpu {

namespace {

std::size_t args_size(quire_op op) {
  switch (op) {
    case QUIRE_OP_POSITIONS: return sizeof(quire_positions_args);
    case QUIRE_OP_MASK: return sizeof(quire_mask_args);
    case QUIRE_OP_ADVANCE: return sizeof(quire_advance_args);
    case QUIRE_OP_EXTEND: return sizeof(quire_extend_args);
    case QUIRE_OP_ATTEND: return sizeof(quire_attend_args);
    case QUIRE_OP_GDN_PREFILL: return sizeof(quire_gdn_prefill_args);
    case QUIRE_OP_GDN_DECODE: return sizeof(quire_gdn_decode_args);
    case QUIRE_OP_GDN_VERIFY: return sizeof(quire_gdn_verify_args);
    case QUIRE_OP_GDN_PREFILL_SLOTS:
    case QUIRE_OP_GDN_DECODE_SLOTS: return sizeof(quire_gdn_slots_args);
    default: throw Failure{QUIRE_UNSUPPORTED, fmt::format("op {} is not known to this backend", op)};
  }
}

bool is_one_of_ours(quire_device device) {
  return device.type == runtime::device_type() && device.id >= 0 && device.id < runtime::device_count();
}

}  // namespace

std::string text_of(quire_device device) {
  return device.type == QUIRE_DEVICE_CPU ? std::string("the host") : fmt::format("device type {} number {}", device.type, device.id);
}

void require_args(quire_op op, const void* args) {
  // Every version's struct begins with its size.
  const std::size_t known = args_size(op), given = args != nullptr ? *static_cast<const std::size_t*>(args) : 0;
  if (given < known) throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("args: a struct of {} bytes; allowed: {} or more", given, known)};
}

void require_device(quire_device device) {
  if (is_one_of_ours(device)) return;
  throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("device: {}; allowed: device type {} numbers 0 to {}", text_of(device),
                                                    runtime::device_type(), runtime::device_count() - 1)};
}

Site site_of(const Call& call) {
  const quire_device first = call.tensors().front().tensor->device;
  for (const CallTensor& entry : call.tensors()) {
    const quire_device device = entry.tensor->device;
    if (device.type == first.type && device.id == first.id) continue;
    throw Failure{QUIRE_UNSUPPORTED, fmt::format("{} lies on {}, {} on {}; all of a call's tensors lie in one place",
                                                 call.tensors().front().name, text_of(first), entry.name, text_of(device))};
  }
  const bool has_device = runtime::device_count() > 0;
  if (first.type == QUIRE_DEVICE_CPU) {
    if (has_device && runtime::limits(0).reads_host) return {true, 0};
    throw Failure{QUIRE_UNSUPPORTED, "its devices do not read the host's memory; copy the tensors there"};
  }
  if (!is_one_of_ours(first)) throw Failure{QUIRE_UNSUPPORTED, fmt::format("tensors on {}, which is none of its devices", text_of(first))};
  return {false, first.id};
}

void require_supported(const Call& call, const Site& site) {
  std::string reason = unsupported_reason(call, runtime::limits(site.device).shared_bytes);
  if (!reason.empty()) throw Failure{QUIRE_UNSUPPORTED, std::move(reason)};
}

}  // namespace quire::gpu
