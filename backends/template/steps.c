/* Captured steps: calls that are copied once and launched with other tensors.
 *
 * Capture copies everything but the tensors' memory: the args structs, the index with its block tables, every shape and stride. Launch
 * checks that the new tensors look as the captured ones did, puts their addresses in and runs the calls in order. A device that records
 * graphs records one at capture, with the addresses as parameters of its nodes, and sets those at launch.
 */
#include "template.h"

#include <stdlib.h>
#include <string.h>

typedef union call_args {
  quire_positions_args positions;
  quire_advance_args advance;
  quire_extend_args extend;
  quire_gdn_decode_args gdn_decode;
} call_args;

typedef struct step_call {
  quire_op op;
  call_args args;
  quire_index index;
  quire_block_table* block_tables;
} step_call;

struct quire_step {
  step_call* calls;
  int32_t call_count;
  /* The tensors of all calls, in the order in which launch is given theirs. The calls' fields point here. */
  quire_tensor* tensors;
  const char** names;
  int64_t* numbers; /* their shapes and strides */
  int32_t tensor_count;
  void* workspace; /* the step's own: two launches of one step are ordered */
  size_t workspace_bytes;
};

quire_status template_step_free(quire_step* step) {
  if (step == NULL) return QUIRE_OK;
  for (int32_t n = 0; step->calls != NULL && n < step->call_count; ++n) free(step->calls[n].block_tables);
  free(step->calls);
  free(step->tensors);
  free(step->names);
  free(step->numbers);
  free(step->workspace);
  free(step);
  return QUIRE_OK;
}

/* ---- capture ---- */

/* A newer host's quire_call may be longer than the one known here; the array's stride is the host's. */
static const quire_call* call_at(const quire_call* calls, int32_t n) {
  return (const quire_call*)(const void*)((const char*)calls + (size_t)n * calls->struct_size);
}

typedef struct amounts {
  size_t tensors, numbers;
} amounts;

static void count_tensor(void* context, const char* name, const quire_tensor* const* field) {
  amounts* total = context;
  (void)name;
  ++total->tensors;
  total->numbers += 2 * (size_t)(*field)->rank;
}

typedef struct copying {
  quire_step* step;
  int64_t* next_numbers;
} copying;

static const int64_t* copy_numbers(copying* to, const int64_t* from, int32_t count) {
  int64_t* numbers = to->next_numbers;
  if (count > 0) memcpy(numbers, from, (size_t)count * sizeof *from);
  to->next_numbers += count;
  return numbers;
}

/* Copies a tensor into the step and points the field there, which belongs to the step's own copy of the args and so may be changed. */
static void take_tensor(void* context, const char* name, const quire_tensor* const* field) {
  copying* to = context;
  const int32_t place = to->step->tensor_count++;
  quire_tensor* tensor = &to->step->tensors[place];
  *tensor = **field;
  tensor->struct_size = sizeof *tensor;
  tensor->shape = copy_numbers(to, (*field)->shape, tensor->rank);
  tensor->strides = copy_numbers(to, (*field)->strides, tensor->rank);
  to->step->names[place] = name;
  *(const quire_tensor**)field = tensor;
}

static bool take_call(copying* to, const quire_call* from, step_call* call) {
  const size_t size = template_args_size(from->op);
  call->op = from->op;
  memcpy(&call->args, from->args, size);
  memcpy(&call->args, &size, sizeof size); /* struct_size */
  if (template_has_index(from->op)) {
    const quire_index* index = call->args.positions.index; /* in the same place in each of the structs */
    const size_t count = (size_t)index->block_table_count;
    call->index = *index;
    call->index.struct_size = sizeof call->index;
    if (count > 0) {
      call->block_tables = malloc(count * sizeof *call->block_tables);
      if (call->block_tables == NULL) return false;
      memcpy(call->block_tables, index->block_tables, count * sizeof *call->block_tables);
    }
    call->index.block_tables = call->block_tables;
    call->args.positions.index = &call->index;
  }
  template_each_tensor(call->op, &call->args, take_tensor, to);
  return true;
}

static bool take_calls(quire_step* step, const quire_call* calls, int32_t call_count, amounts total) {
  /* One more than needed: what calloc answers for nothing is up to it. */
  step->calls = calloc((size_t)call_count + 1, sizeof *step->calls);
  step->tensors = calloc(total.tensors + 1, sizeof *step->tensors);
  step->names = calloc(total.tensors + 1, sizeof *step->names);
  step->numbers = calloc(total.numbers + 1, sizeof *step->numbers);
  step->workspace = malloc(step->workspace_bytes + 1);
  if (step->calls == NULL || step->tensors == NULL || step->names == NULL || step->numbers == NULL || step->workspace == NULL) return false;
  step->call_count = call_count;
  copying to = {step, step->numbers};
  for (int32_t n = 0; n < call_count; ++n) {
    if (!take_call(&to, call_at(calls, n), &step->calls[n])) return false;
  }
  return true;
}

quire_status template_capture(quire_device device, const quire_call* calls, int32_t call_count, quire_step** step) {
  quire_status status = template_check_device(device);
  size_t workspace_bytes = 0;
  amounts total = {0, 0};
  *step = NULL;
  for (int32_t n = 0; status == QUIRE_OK && n < call_count; ++n) {
    const quire_call* call = call_at(calls, n);
    size_t bytes = 0;
    status = template_workspace(call->op, call->args, &bytes); /* says so where a call is not supported */
    if (status != QUIRE_OK) break;
    if (bytes > workspace_bytes) workspace_bytes = bytes;
    template_each_tensor(call->op, call->args, count_tensor, &total);
  }
  if (status != QUIRE_OK) return status;
  quire_step* taken = calloc(1, sizeof *taken);
  if (taken != NULL) taken->workspace_bytes = workspace_bytes;
  if (taken == NULL || !take_calls(taken, calls, call_count, total)) {
    template_step_free(taken);
    return template_fail(QUIRE_UNAVAILABLE, "calls: no memory for a step of %d", (int)call_count);
  }
  *step = taken;
  return QUIRE_OK;
}

/* ---- launch ---- */

static bool looks_alike(const quire_tensor* captured, const quire_tensor* given) {
  if (given->rank != captured->rank || given->dtype != captured->dtype) return false;
  if (given->device.type != captured->device.type || given->device.id != captured->device.id) return false;
  const size_t bytes = (size_t)captured->rank * sizeof(int64_t);
  return bytes == 0 || (memcmp(given->shape, captured->shape, bytes) == 0 && memcmp(given->strides, captured->strides, bytes) == 0);
}

/* A launch that is refused has changed nothing. */
quire_status template_launch(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, int32_t tensor_count) {
  if (tensor_count != step->tensor_count) {
    return template_fail(QUIRE_INVALID_ARGUMENT, "tensors: %d; allowed: the step's %d", (int)tensor_count, (int)step->tensor_count);
  }
  for (int32_t n = 0; n < tensor_count; ++n) {
    if (looks_alike(&step->tensors[n], tensors[n])) continue;
    return template_fail(QUIRE_INVALID_ARGUMENT, "tensors: number %d (%s) differs; allowed: the captured dtype, shape, strides and device",
                         (int)n, step->names[n]);
  }
  for (int32_t n = 0; n < tensor_count; ++n) step->tensors[n].data = tensors[n]->data;
  for (int32_t n = 0; n < step->call_count; ++n) {
    const step_call* call = &step->calls[n];
    const quire_status status = template_run(stream, call->op, &call->args, step->workspace, step->workspace_bytes);
    if (status != QUIRE_OK) return status;
  }
  return QUIRE_OK;
}
