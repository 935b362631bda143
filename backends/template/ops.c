/* Which ops there are, what each takes, and how a call reaches its function. A new op is a line of `ops` and a function. */
#include "template.h"

#include <string.h>

typedef struct tensor_field {
  const char* name;
  size_t offset; /* in the args struct; what is last is the first without a name */
} tensor_field;

typedef struct op_entry {
  const char* name;
  size_t args_size;
  bool has_index;
  tensor_field tensors[16];
  quire_status (*supports)(const void* args); /* null: whatever lies on the host */
  size_t (*workspace)(const void* args);      /* null: none */
  void (*run)(const void* args, void* workspace); /* null: the op is not written */
} op_entry;

#define TENSOR(args, field) {#field, offsetof(args, field)}

static const op_entry ops[QUIRE_OP_COUNT] = {
    [QUIRE_OP_POSITIONS] = {"positions", sizeof(quire_positions_args), true, {TENSOR(quire_positions_args, positions)},
                            NULL, NULL, template_positions},
    [QUIRE_OP_MASK] = {.name = "mask"},
    [QUIRE_OP_ADVANCE] = {"advance", sizeof(quire_advance_args), true, {TENSOR(quire_advance_args, positions)},
                          NULL, NULL, template_advance},
    [QUIRE_OP_EXTEND] = {"extend", sizeof(quire_extend_args), true,
                         {TENSOR(quire_extend_args, values), TENSOR(quire_extend_args, pool), TENSOR(quire_extend_args, seen)},
                         NULL, template_extend_workspace, template_extend},
    [QUIRE_OP_ATTEND] = {.name = "attend"},
    [QUIRE_OP_GDN_PREFILL] = {.name = "gdn_prefill"},
    [QUIRE_OP_GDN_DECODE] = {"gdn_decode", sizeof(quire_gdn_decode_args), false,
                             {TENSOR(quire_gdn_decode_args, q), TENSOR(quire_gdn_decode_args, k), TENSOR(quire_gdn_decode_args, v),
                              TENSOR(quire_gdn_decode_args, g), TENSOR(quire_gdn_decode_args, beta), TENSOR(quire_gdn_decode_args, A_log),
                              TENSOR(quire_gdn_decode_args, a), TENSOR(quire_gdn_decode_args, dt_bias), TENSOR(quire_gdn_decode_args, b),
                              TENSOR(quire_gdn_decode_args, state_pool), TENSOR(quire_gdn_decode_args, state_indices),
                              TENSOR(quire_gdn_decode_args, output_state_indices), TENSOR(quire_gdn_decode_args, output)},
                             template_gdn_decode_supports, template_gdn_decode_workspace, template_gdn_decode},
    [QUIRE_OP_GDN_VERIFY] = {.name = "gdn_verify"},
    [QUIRE_OP_GDN_PREFILL_SLOTS] = {.name = "gdn_prefill_slots"},
    [QUIRE_OP_GDN_DECODE_SLOTS] = {.name = "gdn_decode_slots"},
};

size_t template_args_size(quire_op op) { return ops[op].args_size; }
bool template_has_index(quire_op op) { return ops[op].has_index; }

/* ---- the tensors of a call ---- */

static void visit_present(template_visit* visit, void* context, const char* name, const quire_tensor* const* field) {
  if (*field != NULL) visit(context, name, field);
}

static void each_index_tensor(const quire_index* index, template_visit* visit, void* context) {
  visit_present(visit, context, "index.pos", &index->pos);
  visit_present(visit, context, "index.table", &index->table);
  visit_present(visit, context, "index.row", &index->row);
  for (int64_t n = 0; n < index->block_table_count; ++n) {
    visit_present(visit, context, "index.blocks", &index->block_tables[n].blocks);
  }
  visit_present(visit, context, "index.columns", &index->columns);
  visit_present(visit, context, "index.slots", &index->slots);
  visit_present(visit, context, "index.sees", &index->sees);
}

/* The index stands first in each args struct that has one, so that any of those structs finds it. */
static const quire_index* index_of(const void* args) { return ((const quire_positions_args*)args)->index; }
_Static_assert(offsetof(quire_positions_args, index) == offsetof(quire_advance_args, index), "the index stands first");
_Static_assert(offsetof(quire_positions_args, index) == offsetof(quire_extend_args, index), "the index stands first");

void template_each_tensor(quire_op op, const void* args, template_visit* visit, void* context) {
  const op_entry* entry = &ops[op];
  if (entry->has_index) each_index_tensor(index_of(args), visit, context);
  for (const tensor_field* field = entry->tensors; field->name != NULL; ++field) {
    visit_present(visit, context, field->name, (const quire_tensor* const*)(const void*)((const char*)args + field->offset));
  }
}

/* ---- supports ---- */

/* Every struct begins with the size that its writer knew. One of an older header lacks fields that this code reads. */
static bool is_older(const void* of_the_caller, size_t known) {
  size_t size = 0;
  memcpy(&size, of_the_caller, sizeof size);
  return size < known;
}

static void check_tensor(void* context, const char* name, const quire_tensor* const* field) {
  quire_status* status = context;
  const quire_tensor* tensor = *field;
  if (*status != QUIRE_OK) return;
  if (is_older(tensor, sizeof *tensor))
    *status = template_fail(QUIRE_UNSUPPORTED, "%s is written for an older header", name);
  else if (tensor->device.type != QUIRE_DEVICE_CPU)
    *status = template_fail(QUIRE_UNSUPPORTED, "%s lies on a device of type %d; only the host's memory is read", name,
                            (int)tensor->device.type);
}

/* Answers for exactly these args, and reads no tensor's data. An honest "unsupported" is no failure of a backend; a wrong result is one. */
quire_status template_supports(quire_op op, const void* args) {
  if (op < 0 || op >= QUIRE_OP_COUNT) return template_fail(QUIRE_UNSUPPORTED, "op %d is not known", (int)op);
  const op_entry* entry = &ops[op];
  if (entry->run == NULL) return template_fail(QUIRE_UNSUPPORTED, "%s is not written", entry->name);
  if (is_older(args, entry->args_size) || (entry->has_index && is_older(index_of(args), sizeof(quire_index)))) {
    return template_fail(QUIRE_UNSUPPORTED, "%s: its args are written for an older header", entry->name);
  }
  quire_status status = QUIRE_OK;
  template_each_tensor(op, args, check_tensor, &status);
  if (status == QUIRE_OK && entry->supports != NULL) status = entry->supports(args);
  return status;
}

/* ---- running ---- */

static size_t workspace_of(quire_op op, const void* args) { return ops[op].workspace != NULL ? ops[op].workspace(args) : 0; }

quire_status template_workspace(quire_op op, const void* args, size_t* bytes) {
  const quire_status status = template_supports(op, args);
  *bytes = status == QUIRE_OK ? workspace_of(op, args) : 0;
  return status;
}

/* A device's run copies args, shapes and strides to where its queue reads them, and returns. This one is done when it returns, and so may
 * use them as they are. */
quire_status template_run(quire_stream* stream, quire_op op, const void* args, void* workspace, size_t workspace_bytes) {
  const quire_status status = template_supports(op, args);
  (void)stream;
  if (status != QUIRE_OK) return status;
  const size_t needed = workspace_of(op, args);
  if (workspace_bytes < needed || (workspace == NULL && needed > 0)) {
    return template_fail(QUIRE_INVALID_ARGUMENT, "workspace_bytes: %zu; allowed: at least the %zu that %s needs",
                         workspace == NULL ? (size_t)0 : workspace_bytes, needed, ops[op].name);
  }
  ops[op].run(args, workspace);
  return QUIRE_OK;
}

/* ---- the contract ---- */

/* What `run` rounds, no more and no less: the tolerance of every result is derived from it. That a bf16 input is coarse, or a
 * result rounded to bf16 once, is no part of it: the sums in between are float32's whatever the dtypes. */
quire_status template_contract(quire_op op, quire_dtype input, quire_dtype state, quire_contract* contract) {
  const quire_contract exact = {.struct_size = sizeof exact, .chunk_length = 1, .batch_invariant = 1};
  const quire_contract float32 = {
      .struct_size = sizeof float32,
      .u_product = 0x1p-24,
      .u_accumulate = 0x1p-24,
      .u_store = 0x1p-24,
      .u_exp = 0x1p-23, /* expf and log1pf are good to a unit in the last place */
      .decay_from_log_sums = 0,
      .chunk_length = 1, /* a token recurrence */
      .batch_invariant = 1,
  };
  if (op < 0 || op >= QUIRE_OP_COUNT) return template_fail(QUIRE_UNSUPPORTED, "op %d is not known", (int)op);
  if (ops[op].run == NULL) return template_fail(QUIRE_UNSUPPORTED, "%s is not written", ops[op].name);
  if (op == QUIRE_OP_GDN_DECODE && !(template_is_float(input) && template_is_float(state))) {
    return template_fail(QUIRE_UNSUPPORTED, "gdn_decode of %s on states of %s is not written, only of f32 and bf16",
                         template_dtype_name(input), template_dtype_name(state));
  }
  template_answer(contract, contract->struct_size, op == QUIRE_OP_GDN_DECODE ? &float32 : &exact, sizeof exact);
  return QUIRE_OK;
}
