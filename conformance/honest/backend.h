// A backend's table around any `run`: memory and streams of the host are the same for all of them.
#pragma once

#include "fault.h"

#include <string_view>

namespace quire::conformance::honest {

/// Fills in a describe: every dtype, never the default backend.
quire_status describe_as(const char* name, const char* description, quire_backend_info* info);
/// QUIRE_OK for every op on host tensors.
quire_status supports_host(quire_op op, const void* args);
/// A contract of exact ops as such, of the others as honest_contract(options, op).
quire_status contract_of(const HonestOptions& options, quire_op op, quire_contract* contract);

using Describe = quire_status (*)(quire_backend_info*);
using Supports = quire_status (*)(quire_op, const void*);
using Run = quire_status (*)(quire_stream*, quire_op, const void*, void*, std::size_t);
using Contract = quire_status (*)(quire_op, quire_dtype, quire_dtype, quire_contract*);

/// The table of these four, the rest being what every host backend does.
quire_backend_table host_table(Describe describe, Supports supports, Run run, Contract contract);

}  // namespace quire::conformance::honest
