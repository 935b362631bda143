/* What the files of this plugin share. It includes the ABI's header, quire/backend.h, and of Quire nothing else.
 *
 * A backend for new hardware begins as a copy of this folder (backends/README.md walks through it). Then, one at a time, replace what is
 * inside memory.c (where tensors lie, streams, events), the ops (extend.c and so on), steps.c.
 */
#ifndef QUIRE_TEMPLATE_H
#define QUIRE_TEMPLATE_H

#include <quire/backend.h>
#include <stdbool.h>

#define TEMPLATE_NAME "template"

/* ---- template.c ---- */

/* Keeps a message for last_error and answers `status`. A message says which argument, what was given, what is allowed. */
quire_status template_fail(quire_status status, const char* format, ...);
/* QUIRE_OK for a device that this backend has. */
quire_status template_check_device(quire_device device);
/* Copies what the caller's struct, of size `capacity` as it says itself, has room for. */
void template_answer(void* to, size_t capacity, const void* from, size_t size);

/* ---- memory.c ---- */

quire_status template_allocate(quire_device device, quire_stream* stream, size_t bytes, void** data);
quire_status template_free(quire_device device, quire_stream* stream, void* data);
quire_status template_copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device,
                           size_t bytes);
quire_status template_stream_create(quire_device device, quire_stream** stream);
quire_status template_stream_destroy(quire_stream* stream);
quire_status template_synchronize(quire_stream* stream);
quire_status template_event_create(quire_device device, quire_event** event);
quire_status template_event_destroy(quire_event* event);
quire_status template_event_record(quire_event* event, quire_stream* stream);
quire_status template_event_wait(quire_event* event, quire_stream* stream);
quire_status template_event_synchronize(quire_event* event);

/* ---- ops.c: which ops there are ---- */

quire_status template_supports(quire_op op, const void* args);
quire_status template_workspace(quire_op op, const void* args, size_t* bytes);
quire_status template_run(quire_stream* stream, quire_op op, const void* args, void* workspace, size_t workspace_bytes);
quire_status template_contract(quire_op op, quire_dtype input, quire_dtype state, quire_contract* contract);
/* The size of the op's args struct, and whether it has an index, which then stands first; for an op that `template_supports` takes. */
size_t template_args_size(quire_op op);
bool template_has_index(quire_op op);

/* Calls `visit` for each tensor of a call that is present, in the order in which a step's tensors stand: the index's own where the index
 * stands, then the args struct's fields. `field` is the pointer to the tensor inside the struct. */
typedef void template_visit(void* context, const char* name, const quire_tensor* const* field);
void template_each_tensor(quire_op op, const void* args, template_visit* visit, void* context);

/* ---- steps.c ---- */

quire_status template_capture(quire_device device, const quire_call* calls, int32_t call_count, quire_step** step);
quire_status template_launch(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, int32_t tensor_count);
quire_status template_step_free(quire_step* step);

/* ---- tensors.c: addresses and rows. The library has checked every shape, dtype and host value before it calls. ---- */

size_t template_size_of(quire_dtype dtype);
const char* template_dtype_name(quire_dtype dtype);
/* The address of the row at the leading indices (i), (i, j) or (i, j, k). */
char* template_at(const quire_tensor* tensor, int64_t i);
char* template_at2(const quire_tensor* tensor, int64_t i, int64_t j);
char* template_at3(const quire_tensor* tensor, int64_t i, int64_t j, int64_t k);
/* An element of an i32 or i64 tensor of one axis, and of an i64 tensor of two or three. */
int64_t template_integer(const quire_tensor* tensor, int64_t i);
int64_t template_integer2(const quire_tensor* tensor, int64_t i, int64_t j);
int64_t template_integer3(const quire_tensor* tensor, int64_t i, int64_t j, int64_t k);
/* The dtypes that the gated delta rule takes here, and their n-th element behind `at`. What is put is rounded to nearest even (E5). */
bool template_is_float(quire_dtype dtype);
float template_float(quire_dtype dtype, const char* at, int64_t n);
void template_put_float(quire_dtype dtype, char* at, int64_t n, float value);
/* A row is what stands behind a tensor's leading axes: the axes from `axis` on, of any strides but for the last, which is dense. */
bool template_row_is_empty(const quire_tensor* tensor, int32_t axis);
void template_copy_row(const quire_tensor* from_tensor, int32_t from_axis, const char* from, const quire_tensor* to_tensor, int32_t to_axis,
                       char* to);
void template_clear_row(const quire_tensor* tensor, int32_t axis, char* row);

/* ---- index.c: what a call's tokens are, see and store (laws A2, B1-B5, B7, C3) ---- */

/* One lane of an index. */
typedef struct template_lane {
  const quire_index* index;
  int64_t lane;
  int64_t row;      /* of the table, or -1 where it addresses nothing (A2) */
  bool is_padding;  /* throughout */
  int64_t least;    /* of its real positions, -1 where it has none */
  int64_t greatest;
} template_lane;

/* A half-open range of columns. */
typedef struct template_range {
  int64_t begin, end;
} template_range;

template_lane template_read_lane(const quire_index* index, int64_t lane);
/* A token's position, -1 where it is padding. */
int64_t template_position(const template_lane* lane, int64_t i);
/* Columns of the table that the index reads; of a whole or packed index its tokens, or blocks of them. Without a draft's tokens. */
int64_t template_columns(const quire_index* index);
/* The slot of a column of the table, -1 where it has none (a number past the pool is answered as it stands). */
int64_t template_slot(const template_lane* lane, int64_t column);
/* The slot at which a token stores, -1 where it stores nothing. */
int64_t template_target(const template_lane* lane, int64_t i);
/* The columns that a token sees. */
template_range template_seen(const template_lane* lane, int64_t i);
/* On a whole or packed index the place of the token whose values a column is, -1 where there is none. */
int64_t template_token_of_column(const template_lane* lane, int64_t column);

/* ---- the ops, each in a file of its name; positions.c has the first two ---- */

void template_positions(const void* args, void* workspace);
void template_advance(const void* args, void* workspace);
size_t template_extend_workspace(const void* args);
void template_extend(const void* args, void* workspace);
quire_status template_gdn_decode_supports(const void* args);
size_t template_gdn_decode_workspace(const void* args);
void template_gdn_decode(const void* args, void* workspace);

#endif
