/* The plugin's table: what it is, which devices it has, its errors, and the one function that it exports. */
#include "template.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

/* One message per thread: two threads may fail at once. */
static _Thread_local char message[512] = "";

quire_status template_fail(quire_status status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return status;
}

static const char* last_error(void) { return message; }

/* ---- what and where ---- */

void template_answer(void* to, size_t capacity, const void* from, size_t size) {
  const size_t known = capacity < size ? capacity : size;
  memcpy(to, from, known);
  memcpy(to, &known, sizeof known); /* struct_size, each struct's first field: as much as was written */
}

#if defined(__SANITIZE_ADDRESS__)
#define BUILT_WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILT_WITH_ASAN 1
#endif
#endif

static uint32_t build_bits(void) {
  uint32_t bits = 0;
#ifndef NDEBUG
  bits |= QUIRE_BUILD_DEBUG;
#endif
#ifdef BUILT_WITH_ASAN
  bits |= QUIRE_BUILD_ASAN;
#endif
  return bits;
}

/* Works without a device too: a driver that is missing is device_count's answer. */
static quire_status describe(quire_backend_info* info) {
  const quire_backend_info full = {
      .struct_size = sizeof full,
      .name = TEMPLATE_NAME,
      .version = "0.1.0",
      .description = "the smallest plugin, in plain C on the host, to copy for new hardware",
      .dtypes = (UINT64_C(1) << QUIRE_DTYPE_COUNT) - 1, /* extend copies bytes, so it takes any */
      .float_dtypes = UINT64_C(1) << QUIRE_F32 | UINT64_C(1) << QUIRE_BF16,
      .state_dtypes = UINT64_C(1) << QUIRE_F32 | UINT64_C(1) << QUIRE_BF16,
      .rank = -1, /* never chosen unless it is named */
      .build = build_bits(),
      .driver = NULL,
  };
  template_answer(info, info->struct_size, &full, sizeof full);
  return QUIRE_OK;
}

/* Where a driver or device is missing: template_fail(QUIRE_UNAVAILABLE, ...) with the driver's own words, and *count = 0. */
static quire_status device_count(int32_t* count) {
  *count = 1;
  return QUIRE_OK;
}

static quire_status device_info(int32_t ordinal, quire_device_info* info) {
  const quire_device_info full = {
      .struct_size = sizeof full,
      .device = {QUIRE_DEVICE_CPU, 0},
      .name = "the host, one thread",
      .memory_bytes = 0, /* plain C can't tell */
      .reads_host = 1,   /* memory.c's memory is the host's. 0 where tensors must be copied to the device first */
  };
  if (ordinal != 0) return template_fail(QUIRE_INVALID_ARGUMENT, "ordinal: %d; allowed: 0", (int)ordinal);
  template_answer(info, info->struct_size, &full, sizeof full);
  return QUIRE_OK;
}

quire_status template_check_device(quire_device device) {
  if (device.type == QUIRE_DEVICE_CPU && device.id == 0) return QUIRE_OK;
  return template_fail(QUIRE_INVALID_ARGUMENT, "device: type %d, number %d; allowed: type %d, number 0", (int)device.type, (int)device.id,
                       (int)QUIRE_DEVICE_CPU);
}

/* ---- the table ---- */

static const quire_backend_table table = {
    .struct_size = sizeof table,
    .abi_version = QUIRE_ABI_VERSION,
    .semantics_version = QUIRE_SEMANTICS_VERSION,
    .describe = describe,
    .device_count = device_count,
    .device_info = device_info,
    .last_error = last_error,
    .allocate = template_allocate,
    .free = template_free,
    .copy = template_copy,
    .stream_create = template_stream_create,
    .stream_destroy = template_stream_destroy,
    .synchronize = template_synchronize,
    .event_create = template_event_create,
    .event_destroy = template_event_destroy,
    .event_record = template_event_record,
    .event_wait = template_event_wait,
    .event_synchronize = template_event_synchronize,
    .supports = template_supports,
    .workspace = template_workspace,
    .run = template_run,
    .contract = template_contract,
    .capture = template_capture,
    .launch = template_launch,
    .step_free = template_step_free,
};

/* The only symbol that leaves the plugin, which is built with -fvisibility=hidden. */
QUIRE_BACKEND_EXPORT const quire_backend_table* quire_backend_query(const quire_host* host, uint32_t min_version, uint32_t max_version,
                                                                    const char** reason);

const quire_backend_table* quire_backend_query(const quire_host* host, uint32_t min_version, uint32_t max_version, const char** reason) {
  (void)host; /* its version is for messages */
  if (table.abi_version >= min_version && table.abi_version <= max_version) return &table;
  _Static_assert(QUIRE_ABI_VERSION == 0u, "the reason names the versions spoken");
  *reason = "it speaks version 0 of the ABI alone";
  return NULL;
}
