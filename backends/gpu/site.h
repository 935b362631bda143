// Where a call's tensors lie, and whether this backend runs it there.
#pragma once

#include <quire/call.h>

#include <string>

namespace quire::gpu {

/// One of the backend's devices, or the host where the backend's devices read it.
struct Site {
  bool is_host = false;
  std::int32_t device = 0;
};

/// Raises Failure: QUIRE_UNSUPPORTED for tensors on several devices, on other backends' or on a host that devices do not read;
/// QUIRE_UNAVAILABLE where there is no device.
Site site_of(const Call& call);

/// Raises Failure, QUIRE_UNSUPPORTED with the reason, for a call that this backend does not run (plan.h).
void require_supported(const Call& call, const Site& site);

/// Raises Failure, QUIRE_INVALID_ARGUMENT, unless it is one of the backend's devices.
void require_device(quire_device device);

/// Raises Failure, QUIRE_INVALID_ARGUMENT: args whose writer knew fewer fields than ABI version 0 has, or an unknown op
/// (QUIRE_UNSUPPORTED).
void require_args(quire_op op, const void* args);

std::string text_of(quire_device device);

}  // namespace quire::gpu
