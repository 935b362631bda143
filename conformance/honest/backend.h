// A backend's table around any `run`: memory and streams of the host are the same for all of them.
#pragma once

#include <quire/host_backend.h>

#include "fault.h"

#include <string_view>

namespace quire::conformance::honest {

/// Fills in a describe: every dtype, never the default backend.
quire_status describe_as(const char* name, const char* description, quire_backend_info* info);
/// QUIRE_OK for every op on host tensors.
quire_status supports_host(quire_op op, const void* args);
/// A contract of exact ops as such, of the others as honest_contract(options, op).
quire_status contract_of(const HonestOptions& options, quire_op op, quire_contract* contract);

/// The table of these four, the rest being what every host backend does.
template <quire_status (*describe)(quire_backend_info*), quire_status (*supports)(quire_op, const void*),
          quire_status (*run)(quire_stream*, quire_op, const void*, void*, std::size_t),
          quire_status (*contract)(quire_op, quire_dtype, quire_dtype, quire_contract*)>
quire_backend_table host_table() {
  return {sizeof(quire_backend_table),
          QUIRE_ABI_VERSION,
          QUIRE_SEMANTICS_VERSION,
          describe,
          host::device_count,
          [](std::int32_t ordinal, quire_device_info* info) { return host::device_info(ordinal, info, 0); },
          host::last_error,
          host::allocate,
          host::release,
          host::copy,
          host::stream_create,
          host::stream_destroy,
          host::synchronize,
          host::event_create,
          host::event_destroy,
          host::event_record,
          host::event_wait,
          host::event_synchronize,
          supports,
          host::no_workspace,
          run,
          contract,
          [](quire_device, const quire_call* calls, std::int32_t count, quire_step** step) { return host::capture(calls, count, step, supports); },
          [](quire_stream*, quire_step* step, const quire_tensor* const* tensors, std::int32_t count) {
            return host::launch(step, tensors, count, [](quire_op op, const void* args) { return run(nullptr, op, args, nullptr, 0); });
          },
          host::step_free};
}

}  // namespace quire::conformance::honest
