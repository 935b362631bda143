/* The C ABI from C11: every struct filled, every op called, and a backend's table written in C. */
#include "backend_header_test.h"

#include <math.h>
#include <string.h>

int quire_header_sizes(size_t* sizes, int capacity) {
  const size_t all[] = {sizeof(quire_device),          sizeof(quire_tensor),           sizeof(quire_block_table),
                        sizeof(quire_index),           sizeof(quire_positions_args),   sizeof(quire_mask_args),
                        sizeof(quire_advance_args),    sizeof(quire_extend_args),      sizeof(quire_attend_args),
                        sizeof(quire_gdn_prefill_args), sizeof(quire_gdn_decode_args), sizeof(quire_gdn_verify_args),
                        sizeof(quire_gdn_slots_args),  sizeof(quire_contract),         sizeof(quire_backend_info),
                        sizeof(quire_device_info),     sizeof(quire_call),             sizeof(quire_backend_table),
                        sizeof(quire_host)};
  const int count = (int)(sizeof all / sizeof all[0]);
  for (int i = 0; i < count && i < capacity; ++i) sizes[i] = all[i];
  return count;
}

/* A struct that grows is read by its first field. */
#define STARTS_WITH_SIZE(type) _Static_assert(offsetof(type, struct_size) == 0, #type " begins with struct_size")
STARTS_WITH_SIZE(quire_tensor);
STARTS_WITH_SIZE(quire_index);
STARTS_WITH_SIZE(quire_positions_args);
STARTS_WITH_SIZE(quire_mask_args);
STARTS_WITH_SIZE(quire_advance_args);
STARTS_WITH_SIZE(quire_extend_args);
STARTS_WITH_SIZE(quire_attend_args);
STARTS_WITH_SIZE(quire_gdn_prefill_args);
STARTS_WITH_SIZE(quire_gdn_decode_args);
STARTS_WITH_SIZE(quire_gdn_verify_args);
STARTS_WITH_SIZE(quire_gdn_slots_args);
STARTS_WITH_SIZE(quire_contract);
STARTS_WITH_SIZE(quire_backend_info);
STARTS_WITH_SIZE(quire_device_info);
STARTS_WITH_SIZE(quire_call);
STARTS_WITH_SIZE(quire_backend_table);
STARTS_WITH_SIZE(quire_host);

/* ---- a backend in C ---- */

static const char* last_failure = "";
static quire_status fail(const char* why) {
  last_failure = why;
  return QUIRE_UNSUPPORTED;
}
static quire_status describe(quire_backend_info* info) {
  quire_backend_info full = {sizeof full, "written in C", "1", "answers no op", 1u << QUIRE_F32, 0, 0, -1, QUIRE_BUILD_DEBUG, "no driver"};
  full.struct_size = info->struct_size < sizeof full ? info->struct_size : sizeof full;
  memcpy(info, &full, full.struct_size);
  return QUIRE_OK;
}
static quire_status device_count(int32_t* count) { *count = 1; return QUIRE_OK; }
static quire_status device_info(int32_t ordinal, quire_device_info* info) {
  const quire_device_info full = {sizeof full, {QUIRE_DEVICE_CPU, 0}, "a processor", 0, 1};
  if (ordinal != 0) return fail("ordinal: allowed: 0");
  *info = full;
  return QUIRE_OK;
}
static const char* last_error(void) { return last_failure; }
static quire_status allocate(quire_device device, quire_stream* stream, size_t bytes, void** data) {
  (void)device; (void)stream; (void)bytes;
  *data = NULL; return fail("allocate");
}
static quire_status free_memory(quire_device device, quire_stream* stream, void* data) { (void)device; (void)stream; (void)data; return QUIRE_OK; }
static quire_status copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, size_t bytes) {
  (void)stream; (void)to_device; (void)from_device;
  memmove(to, from, bytes);
  return QUIRE_OK;
}
static quire_status stream_create(quire_device device, quire_stream** stream) { (void)device; *stream = NULL; return QUIRE_OK; }
static quire_status stream_of(quire_stream* stream) { (void)stream; return QUIRE_OK; }
static quire_status event_create(quire_device device, quire_event** event) { (void)device; *event = NULL; return QUIRE_OK; }
static quire_status event_destroy(quire_event* event) { (void)event; return QUIRE_OK; }
static quire_status event_on(quire_event* event, quire_stream* stream) { (void)event; (void)stream; return QUIRE_OK; }
static quire_status supports(quire_op op, const void* args) { (void)op; (void)args; return fail("no op is written yet"); }
static quire_status workspace(quire_op op, const void* args, size_t* bytes) { (void)op; (void)args; *bytes = 0; return QUIRE_OK; }
static quire_status run(quire_stream* stream, quire_op op, const void* args, void* space, size_t bytes) {
  (void)stream; (void)space; (void)bytes;
  return supports(op, args);
}
static quire_status contract(quire_op op, quire_dtype input, quire_dtype state, quire_contract* out) {
  const quire_contract full = {sizeof full, 0x1p-24, 0x1p-24, 0, 0x1p-23, 0, 1, 1};
  (void)op; (void)input; (void)state;
  *out = full;
  return QUIRE_OK;
}
static quire_status capture(quire_device device, const quire_call* calls, int32_t count, quire_step** step) {
  (void)device; (void)calls; (void)count;
  *step = NULL;
  return fail("no steps");
}
static quire_status launch(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, int32_t count) {
  (void)stream; (void)step; (void)tensors; (void)count;
  return fail("no steps");
}
static quire_status step_free(quire_step* step) { (void)step; return QUIRE_OK; }

const quire_backend_table* quire_header_query(const quire_host* host, uint32_t min_version, uint32_t max_version, const char** reason) {
  static const quire_backend_table table = {
      sizeof(quire_backend_table), QUIRE_ABI_VERSION, QUIRE_SEMANTICS_VERSION, describe, device_count, device_info, last_error,
      allocate, free_memory, copy, stream_create, stream_of, stream_of, event_create, event_destroy, event_on, event_on, event_destroy, supports,
      workspace, run, contract, capture, launch, step_free};
  if (host->struct_size < sizeof *host || table.abi_version < min_version || table.abi_version > max_version) {
    *reason = "it speaks another ABI version";
    return NULL;
  }
  return &table;
}

/* ---- the ops from C ---- */

typedef struct {
  int64_t shape[4];
  int64_t strides[4];
  quire_tensor tensor;
} Dense;

static const quire_tensor* dense(Dense* to, void* data, quire_dtype dtype, int32_t rank, const int64_t* shape) {
  int64_t step = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    to->shape[axis] = shape[axis];
    to->strides[axis] = step;
    step *= shape[axis];
  }
  const quire_tensor tensor = {sizeof tensor, data, to->shape, to->strides, rank, dtype, {QUIRE_DEVICE_CPU, 0}};
  to->tensor = tensor;
  return &to->tensor;
}
#define DENSE(name, data, dtype, rank, ...) \
  Dense name##_storage;                     \
  const quire_tensor* name = dense(&name##_storage, data, dtype, rank, (const int64_t[]){__VA_ARGS__})

#define EXPECT(condition) \
  do {                    \
    if (!(condition)) return #condition; \
  } while (0)
#define RUN(op, args) EXPECT(table->supports(op, &(args)) == QUIRE_OK && table->run(NULL, op, &(args), NULL, 0) == QUIRE_OK)

/* One lane, two tokens at positions 1 and 2 of three columns; slots 4, 1, 2. */
static const char* run_index_ops(const quire_backend_table* table) {
  int64_t pos_data[2] = {1, 2}, table_data[3] = {4, 1, 2}, blocks_data[1] = {0}, out_data[2] = {9, 9}, next_data[1] = {9};
  uint8_t mask_data[6] = {9, 9, 9, 9, 9, 9};
  float values_data[2] = {10, 20}, pool_data[5] = {0, 1, 2, 3, 4}, seen_data[3] = {9, 9, 9};
  DENSE(pos, pos_data, QUIRE_I64, 2, 1, 2);
  DENSE(slots, table_data, QUIRE_I64, 2, 1, 3);
  DENSE(blocks, blocks_data, QUIRE_I64, 2, 1, 1);
  DENSE(out, out_data, QUIRE_I64, 2, 1, 2);
  DENSE(next, next_data, QUIRE_I64, 2, 1, 1);
  DENSE(mask, mask_data, QUIRE_BOOL, 3, 1, 2, 3);
  DENSE(values, values_data, QUIRE_F32, 3, 1, 2, 1);
  DENSE(pool, pool_data, QUIRE_F32, 2, 5, 1);
  DENSE(seen, seen_data, QUIRE_F32, 3, 1, 3, 1);
  const quire_block_table block_table = {4, blocks};
  const quire_index index = {sizeof index, QUIRE_INDEX_TABLED, pos, slots, NULL, 1, &block_table, 1, 2, NULL, NULL, NULL};
  const quire_positions_args positions_args = {sizeof positions_args, &index, out};
  const quire_mask_args mask_args = {sizeof mask_args, &index, mask};
  const quire_advance_args advance_args = {sizeof advance_args, &index, next};
  const quire_extend_args extend_args = {sizeof extend_args, &index, values, pool, seen};
  RUN(QUIRE_OP_POSITIONS, positions_args);
  EXPECT(out_data[0] == 1 && out_data[1] == 2);
  RUN(QUIRE_OP_MASK, mask_args); /* a window of two positions */
  EXPECT(mask_data[0] == 1 && mask_data[1] == 1 && mask_data[2] == 0 && mask_data[3] == 0 && mask_data[4] == 1 && mask_data[5] == 1);
  RUN(QUIRE_OP_ADVANCE, advance_args);
  EXPECT(next_data[0] == 3);
  RUN(QUIRE_OP_EXTEND, extend_args);
  EXPECT(seen_data[0] == 4 && seen_data[1] == 10 && seen_data[2] == 20);
  EXPECT(pool_data[0] == 0 && pool_data[1] == 10 && pool_data[2] == 20 && pool_data[3] == 3 && pool_data[4] == 4);

  /* One token that sees itself alone gives its own value, lse its score. */
  float q_data[1] = {2}, k_data[1] = {3}, v_data[1] = {7}, k_pool_data[1] = {0}, v_pool_data[1] = {0}, attended_data[1] = {9}, lse_data[1] = {9};
  int64_t zero_data[1] = {0};
  DENSE(zero, zero_data, QUIRE_I64, 2, 1, 1);
  DENSE(q, q_data, QUIRE_F32, 4, 1, 1, 1, 1);
  DENSE(k, k_data, QUIRE_F32, 4, 1, 1, 1, 1);
  DENSE(v, v_data, QUIRE_F32, 4, 1, 1, 1, 1);
  DENSE(k_pool, k_pool_data, QUIRE_F32, 3, 1, 1, 1);
  DENSE(v_pool, v_pool_data, QUIRE_F32, 3, 1, 1, 1);
  DENSE(attended, attended_data, QUIRE_F32, 4, 1, 1, 1, 1);
  DENSE(lse, lse_data, QUIRE_F32, 3, 1, 1, 1);
  const quire_index one = {sizeof one, QUIRE_INDEX_TABLED, zero, zero, NULL, 0, NULL, 1, 0, NULL, NULL, NULL};
  const quire_attend_args attend_args = {sizeof attend_args, &one, q, k, v, k_pool, v_pool, NULL, attended, lse, 0.5, 0};
  RUN(QUIRE_OP_ATTEND, attend_args);
  EXPECT(attended_data[0] == 7 && lse_data[0] == 3 && k_pool_data[0] == 3 && v_pool_data[0] == 7);
  return NULL;
}

/* g = beta = 1/2, k = 1: from 0, v = 1 gives state 1/2; v = 2 then gives 1/4 + (2 - 1/4)/2 = 1.125. */
static const char* run_rule_ops(const quire_backend_table* table) {
  float ones_data[2] = {1, 1}, v_data[2] = {1, 2}, half_data[2] = {0.5f, 0.5f}, output_data[2] = {9, 9}, state_data[3] = {0, 8, 8};
  int32_t lens_data[2] = {0, 2}, zero_data[1] = {0}, one_data[1] = {1}, slot_data[1] = {2};
  DENSE(ones, ones_data, QUIRE_F32, 3, 2, 1, 1);
  DENSE(v, v_data, QUIRE_F32, 3, 2, 1, 1);
  DENSE(half, half_data, QUIRE_F32, 2, 2, 1);
  DENSE(lens, lens_data, QUIRE_I32, 1, 2);
  DENSE(read, zero_data, QUIRE_I32, 1, 1);
  DENSE(write, one_data, QUIRE_I32, 1, 1);
  DENSE(state, state_data, QUIRE_F32, 4, 3, 1, 1, 1);
  DENSE(output, output_data, QUIRE_F32, 3, 2, 1, 1);
  const quire_gdn_prefill_args prefill = {sizeof prefill, ones, ones, v, half, half, lens, state, read, state, write, NULL, NULL, NULL, NULL,
                                          output, 0, 1.0, 0, 0};
  RUN(QUIRE_OP_GDN_PREFILL, prefill);
  EXPECT(output_data[0] == 0.5f && output_data[1] == 1.125f && state_data[0] == 0 && state_data[1] == 1.125f && state_data[2] == 8);

  float three_data[1] = {3}, decoded_data[1] = {9}, one_key_data[1] = {1}, gate_data[1] = {0.5f};
  DENSE(key, one_key_data, QUIRE_F32, 4, 1, 1, 1, 1);
  DENSE(value, three_data, QUIRE_F32, 4, 1, 1, 1, 1);
  DENSE(gate, gate_data, QUIRE_F32, 3, 1, 1, 1);
  DENSE(decoded, decoded_data, QUIRE_F32, 4, 1, 1, 1, 1);
  const quire_gdn_decode_args decode = {sizeof decode, key, key, value, gate, gate, NULL, NULL, NULL, NULL, state, write, NULL, decoded, 1.0, 0};
  RUN(QUIRE_OP_GDN_DECODE, decode);
  EXPECT(decoded_data[0] == 1.78125f && state_data[1] == 1.78125f);

  int64_t place_data[1] = {0}, none_data[1] = {-1};
  uint8_t sees_data[1] = {1};
  DENSE(place, place_data, QUIRE_I64, 2, 1, 1);
  DENSE(none, none_data, QUIRE_I64, 2, 1, 1);
  DENSE(sees, sees_data, QUIRE_BOOL, 3, 1, 1, 1);
  DENSE(slot, slot_data, QUIRE_I32, 2, 1, 1);
  const quire_index draft = {sizeof draft, QUIRE_INDEX_TABLED, place, none, NULL, 0, NULL, 1, 0, NULL, none, sees};
  const quire_gdn_verify_args verify = {sizeof verify, &draft, key, key, value, gate, gate, state, write, slot, decoded, 1.0, 0};
  state_data[1] = 1.125f;
  RUN(QUIRE_OP_GDN_VERIFY, verify);
  EXPECT(decoded_data[0] == 1.78125f && state_data[1] == 1.125f && state_data[2] == 1.78125f);
  return NULL;
}

/* Pages 7, 3, 12 of 64 tokens: 150 tokens, of which 22 are new. */
static const char* run_slots_ops(const quire_backend_table* table) {
  int32_t lens_data[2] = {0, 22}, pages_data[3] = {7, 3, 12}, indptr_data[2] = {0, 3}, last_data[1] = {22}, out_data[4] = {9, 9, 9, 9};
  DENSE(lens, lens_data, QUIRE_I32, 1, 2);
  DENSE(pages, pages_data, QUIRE_I32, 1, 3);
  DENSE(indptr, indptr_data, QUIRE_I32, 1, 2);
  DENSE(last, last_data, QUIRE_I32, 1, 1);
  DENSE(read, &out_data[0], QUIRE_I32, 1, 1);
  DENSE(write, &out_data[1], QUIRE_I32, 1, 1);
  DENSE(prefix, &out_data[2], QUIRE_I32, 1, 1);
  DENSE(starts, &out_data[3], QUIRE_I32, 1, 1);
  const quire_gdn_slots_args prefill = {sizeof prefill, lens, pages, indptr, last, read, write, prefix, starts, 64};
  RUN(QUIRE_OP_GDN_PREFILL_SLOTS, prefill);
  EXPECT(out_data[0] == 3 && out_data[1] == 12 && out_data[2] == 128 && out_data[3] == 2);
  const quire_gdn_slots_args decode = {sizeof decode, NULL, pages, indptr, last, read, write, NULL, NULL, 64};
  RUN(QUIRE_OP_GDN_DECODE_SLOTS, decode);
  EXPECT(out_data[0] == 12 && out_data[1] == 12);
  return NULL;
}

static const char* run_memory(const quire_backend_table* table) {
  const quire_device host = {QUIRE_DEVICE_CPU, 0};
  const int32_t from = 42;
  void* memory = NULL;
  quire_stream* stream = NULL;
  quire_event* event = NULL;
  quire_step* step = NULL;
  size_t bytes = 9;
  EXPECT(table->allocate(host, stream, sizeof from, &memory) == QUIRE_OK && memory != NULL);
  EXPECT(table->stream_create(host, &stream) == QUIRE_OK && table->event_create(host, &event) == QUIRE_OK);
  EXPECT(table->copy(stream, memory, host, &from, host, sizeof from) == QUIRE_OK);
  EXPECT(table->event_record(event, stream) == QUIRE_OK && table->event_wait(event, NULL) == QUIRE_OK && table->event_synchronize(event) == QUIRE_OK);
  EXPECT(table->synchronize(stream) == QUIRE_OK && memcmp(memory, &from, sizeof from) == 0);
  EXPECT(table->event_destroy(event) == QUIRE_OK && table->stream_destroy(stream) == QUIRE_OK && table->free(host, NULL, memory) == QUIRE_OK);
  int64_t pos_data[1] = {0}, out_data[1] = {0};
  DENSE(pos, pos_data, QUIRE_I64, 2, 1, 1);
  DENSE(out, out_data, QUIRE_I64, 2, 1, 1);
  const quire_index index = {sizeof index, QUIRE_INDEX_WHOLE, pos, NULL, NULL, 0, NULL, 1, 0, NULL, NULL, NULL};
  const quire_positions_args args = {sizeof args, &index, out};
  const quire_call call = {sizeof call, QUIRE_OP_POSITIONS, &args};
  EXPECT(table->workspace(QUIRE_OP_POSITIONS, &args, &bytes) == QUIRE_OK && bytes == 0);
  /* A backend captures, or says that it does not. */
  const quire_status captured = table->capture(host, &call, 1, &step);
  EXPECT(captured == QUIRE_OK || (captured == QUIRE_UNSUPPORTED && table->last_error()[0] != '\0'));
  if (captured == QUIRE_OK) EXPECT(table->step_free(step) == QUIRE_OK);
  return NULL;
}

const char* quire_header_run(const quire_backend_table* table) {
  const char* (*const parts[])(const quire_backend_table*) = {run_index_ops, run_rule_ops, run_slots_ops, run_memory};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
    const char* failure = parts[i](table);
    if (failure != NULL) return failure;
  }
  return NULL;
}
