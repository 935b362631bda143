/* The table that the fake plugins share: one device, one op. Each is this with one thing changed, by a macro before the include or in the
 * table after it. */
#ifndef QUIRE_TESTS_GOOD_TABLE_H
#define QUIRE_TESTS_GOOD_TABLE_H

#include <quire/backend.h>

#include <stddef.h>
#include <string.h>

#ifndef FAKE_NAME
#define FAKE_NAME "good"
#endif
#ifndef FAKE_RANK
#define FAKE_RANK 5
#endif
#ifndef FAKE_ABI
#define FAKE_ABI QUIRE_ABI_VERSION
#endif
#ifndef FAKE_SEMANTICS
#define FAKE_SEMANTICS QUIRE_SEMANTICS_VERSION
#endif
#ifndef FAKE_DTYPES
#define FAKE_DTYPES (1u << QUIRE_F32)
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif

static const char* fake_words = "";
static quire_status fake_fails(quire_status status, const char* words) {
  fake_words = words;
  return status;
}

static quire_status fake_describe(quire_backend_info* info) {
  quire_backend_info full;
  const size_t known = info->struct_size < sizeof full ? info->struct_size : sizeof full;
  memset(&full, 0, sizeof full);
  full.struct_size = known;
  full.name = FAKE_NAME;
  full.version = "1.2.3";
  full.description = "a fake: copies positions";
  full.dtypes = FAKE_DTYPES;
  full.rank = FAKE_RANK;
  full.build = QUIRE_BUILD_DEBUG;
  full.driver = "fake driver 7.8";
  memcpy(info, &full, known);
  return QUIRE_OK;
}
static quire_status fake_device_count(int32_t* count) {
  *count = FAKE_DEVICES;
  return QUIRE_OK;
}
static quire_status fake_device_info(int32_t ordinal, quire_device_info* info) {
  if (ordinal < 0 || ordinal >= FAKE_DEVICES) return fake_fails(QUIRE_INVALID_ARGUMENT, "ordinal: beyond the devices");
  info->device.type = QUIRE_DEVICE_CPU;
  info->device.id = ordinal;
  info->name = "a pretended device";
  info->memory_bytes = (int64_t)3 << 20;
  info->reads_host = 1;
  return QUIRE_OK;
}
static const char* fake_last_error(void) { return fake_words; }

static quire_status fake_allocate(quire_device device, quire_stream* stream, size_t bytes, void** data) {
  (void)device; (void)stream; (void)bytes;
  *data = NULL;
  return fake_fails(QUIRE_UNAVAILABLE, "a fake has no memory");
}
static quire_status fake_free(quire_device device, quire_stream* stream, void* data) {
  (void)device; (void)stream; (void)data;
  return QUIRE_OK;
}
static quire_status fake_copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, size_t bytes) {
  (void)stream; (void)to_device; (void)from_device;
  memmove(to, from, bytes);
  return QUIRE_OK;
}
static quire_status fake_stream_create(quire_device device, quire_stream** stream) {
  (void)device;
  *stream = NULL;
  return fake_fails(QUIRE_UNSUPPORTED, "a fake has no streams");
}
static quire_status fake_on_stream(quire_stream* stream) { (void)stream; return QUIRE_OK; }
static quire_status fake_event_create(quire_device device, quire_event** event) {
  (void)device;
  *event = NULL;
  return fake_fails(QUIRE_UNSUPPORTED, "a fake has no events");
}
static quire_status fake_on_event(quire_event* event) { (void)event; return QUIRE_OK; }
static quire_status fake_event_on_stream(quire_event* event, quire_stream* stream) { (void)event; (void)stream; return QUIRE_OK; }
static quire_status fake_supports(quire_op op, const void* args) {
  (void)args;
  return op == QUIRE_OP_POSITIONS ? QUIRE_OK : fake_fails(QUIRE_UNSUPPORTED, "a fake has positions alone");
}
static quire_status fake_workspace(quire_op op, const void* args, size_t* bytes) {
  (void)op; (void)args;
  *bytes = 0;
  return QUIRE_OK;
}
static quire_status fake_run(quire_stream* stream, quire_op op, const void* args, void* workspace, size_t workspace_bytes) {
  const quire_positions_args* positions = (const quire_positions_args*)args;
  (void)stream; (void)workspace; (void)workspace_bytes;
  if (op != QUIRE_OP_POSITIONS) return fake_supports(op, args);
  memcpy(positions->positions->data, positions->index->pos->data, (size_t)(positions->positions->shape[0] * positions->positions->shape[1]) * sizeof(int64_t));
  return QUIRE_OK;
}
static quire_status fake_contract(quire_op op, quire_dtype input, quire_dtype state, quire_contract* contract) {
  (void)op; (void)input; (void)state;
  contract->u_product = contract->u_accumulate = contract->u_store = contract->u_exp = 0;
  contract->decay_from_log_sums = 0;
  contract->chunk_length = 1;
  contract->batch_invariant = 1;
  return QUIRE_OK;
}
static quire_status fake_capture(quire_device device, const quire_call* calls, int32_t call_count, quire_step** step) {
  (void)device; (void)calls; (void)call_count;
  *step = NULL;
  return fake_fails(QUIRE_UNSUPPORTED, "a fake captures nothing");
}
static quire_status fake_launch(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, int32_t tensor_count) {
  (void)stream; (void)step; (void)tensors; (void)tensor_count;
  return fake_fails(QUIRE_UNSUPPORTED, "a fake captures nothing");
}
static quire_status fake_step_free(quire_step* step) { (void)step; return QUIRE_OK; }

static quire_backend_table fake_table = {
    sizeof(quire_backend_table), FAKE_ABI, FAKE_SEMANTICS, fake_describe, fake_device_count, fake_device_info, fake_last_error,
    fake_allocate, fake_free, fake_copy, fake_stream_create, fake_on_stream, fake_on_stream, fake_event_create, fake_on_event,
    fake_event_on_stream, fake_event_on_stream, fake_on_event, fake_supports, fake_workspace, fake_run, fake_contract, fake_capture,
    fake_launch, fake_step_free};

/* The query of a plugin that minds the range. */
static inline const quire_backend_table* fake_answer(uint32_t min_version, uint32_t max_version, const char** reason) {
  if (fake_table.abi_version >= min_version && fake_table.abi_version <= max_version) return &fake_table;
  *reason = fake_table.abi_version < min_version ? "the fake speaks an older version of the ABI" : "the fake speaks a newer version of the ABI";
  return NULL;
}

/* FAKE_QUERY { ... }: the exported function. */
#define FAKE_QUERY                                                                                                                     \
  QUIRE_BACKEND_EXPORT const quire_backend_table* quire_backend_query(const quire_host* host, uint32_t min_version, uint32_t max_version, \
                                                                      const char** reason)
#define FAKE_PLAIN_QUERY                                    \
  FAKE_QUERY {                                              \
    (void)host;                                             \
    return fake_answer(min_version, max_version, reason);   \
  }

#endif
