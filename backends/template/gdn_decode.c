/* gdn_decode: one token of the gated delta rule per sequence, in float32 (laws E1-E3, E5, E6, E8).
 *
 * The one op here that rounds. It is held to the arithmetic that it declares (the contract in ops.c): each product and each sum below is
 * one float32 operation, so 2^-24; build without -ffast-math. A result that is off by more than such roundings amount to is a failure.
 */
#include "template.h"

#include <math.h>

/* ---- what it takes ---- */

/* The library has checked that dtypes fit each other; a backend says which of the right ones it has. */
quire_status template_gdn_decode_supports(const void* args) {
  const quire_gdn_decode_args* call = args;
  const struct {
    const char* name;
    const quire_tensor* tensor;
  } floats[] = {{"q", call->q}, {"A_log", call->A_log}, {"a", call->a}, {"dt_bias", call->dt_bias}, {"b", call->b},
                {"state_pool", call->state_pool}}; /* k, v and output have q's dtype, g and beta are f32 */
  for (size_t n = 0; n < sizeof floats / sizeof floats[0]; ++n) {
    if (floats[n].tensor == NULL || template_is_float(floats[n].tensor->dtype)) continue;
    return template_fail(QUIRE_UNSUPPORTED, "%s is %s; only f32 and bf16 are written", floats[n].name,
                         template_dtype_name(floats[n].tensor->dtype));
  }
  return QUIRE_OK;
}

/* The query and the key of one head in float32. */
size_t template_gdn_decode_workspace(const void* args) {
  const quire_gdn_decode_args* call = args;
  return 2 * (size_t)call->q->shape[3] * sizeof(float);
}

/* ---- the inputs of one head of one token ---- */

typedef struct head_inputs {
  const float* q; /* [K] */
  const float* k;
  float decay;
  float beta;
} head_inputs;

/* E1: head h of H reads head h / (H / Hx) of an input with Hx heads. */
static const char* head_row(const quire_tensor* tensor, int64_t b, int64_t head, int64_t heads) {
  return template_at3(tensor, b, 0, head / (heads / tensor->shape[2]));
}

/* A query or key, as E2 has it where the call says so: x / sqrt(sum of squares + 1e-6). */
static void read_vector(const quire_gdn_decode_args* call, const quire_tensor* tensor, const char* row, float* to) {
  const int64_t key_size = call->q->shape[3];
  float squares = 0;
  for (int64_t i = 0; i < key_size; ++i) {
    to[i] = template_float(tensor->dtype, row, i);
    squares += to[i] * to[i];
  }
  if (call->use_qk_l2norm == 0) return;
  const float norm = sqrtf(squares + 1e-6F);
  for (int64_t i = 0; i < key_size; ++i) to[i] /= norm;
}

static float number(const quire_tensor* tensor, const char* at) { return template_float(tensor->dtype, at, 0); }

/* E3: softplus is x itself past 20, where exp would soon overflow. */
static float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

static void read_gates(const quire_gdn_decode_args* call, int64_t b, int64_t head, head_inputs* inputs) {
  if (call->A_log != NULL) {
    const float x = number(call->a, template_at3(call->a, b, 0, head)) + number(call->dt_bias, template_at(call->dt_bias, head));
    inputs->decay = expf(-expf(number(call->A_log, template_at(call->A_log, head))) * softplus(x));
    inputs->beta = 1 / (1 + expf(-number(call->b, template_at3(call->b, b, 0, head))));
    return;
  }
  inputs->decay = call->g != NULL ? number(call->g, template_at3(call->g, b, 0, head)) : 1;
  inputs->beta = call->beta != NULL ? number(call->beta, template_at3(call->beta, b, 0, head)) : 1;
}

static head_inputs read_inputs(const quire_gdn_decode_args* call, int64_t b, int64_t head, float* workspace) {
  const int64_t heads = call->output->shape[2];
  float* q = workspace;
  float* k = workspace + call->q->shape[3];
  head_inputs inputs = {q, k, 1, 1};
  read_vector(call, call->q, head_row(call->q, b, head, heads), q);
  read_vector(call, call->k, head_row(call->k, b, head, heads), k);
  read_gates(call, b, head, &inputs);
  return inputs;
}

/* ---- the rule ---- */

/* S <- g * S; r = beta * (v - S k); S <- S + r k^T; o = S q, for one row of S. The new row goes to `to`, which may be `from` or null. */
static float step(const head_inputs* inputs, float v, quire_dtype state_dtype, const char* from, char* to, int64_t key_size) {
  float known = 0;
  for (int64_t i = 0; i < key_size; ++i) known += inputs->decay * template_float(state_dtype, from, i) * inputs->k[i];
  const float r = inputs->beta * (v - known);
  float output = 0;
  for (int64_t i = 0; i < key_size; ++i) {
    const float state = inputs->decay * template_float(state_dtype, from, i) + r * inputs->k[i];
    output += state * inputs->q[i]; /* E5: of the state as it is before it is stored */
    if (to != NULL) template_put_float(state_dtype, to, i, state);
  }
  return output;
}

static bool in_pool(const quire_tensor* pool, int64_t row) { return row >= 0 && row < pool->shape[0]; }

static void run_head(const quire_gdn_decode_args* call, int64_t b, int64_t head, int64_t read, int64_t write, float* workspace) {
  const quire_tensor* pool = call->state_pool;
  const head_inputs inputs = read_inputs(call, b, head, workspace);
  const char* values = head_row(call->v, b, head, call->output->shape[2]);
  char* output = template_at3(call->output, b, 0, head);
  for (int64_t v = 0; v < call->output->shape[3]; ++v) {
    const char* from = template_at3(pool, read, head, v);
    char* to = in_pool(pool, write) ? template_at3(pool, write, head, v) : NULL; /* E6: -1 skips the store */
    const float read_out = step(&inputs, template_float(call->v->dtype, values, v), pool->dtype, from, to, call->q->shape[3]);
    template_put_float(call->output->dtype, output, v, (float)call->scale * read_out);
  }
}

void template_gdn_decode(const void* args, void* workspace) {
  const quire_gdn_decode_args* call = args;
  for (int64_t b = 0; b < call->q->shape[0]; ++b) {
    const int64_t read = template_integer(call->state_indices, b);
    const int64_t write = call->output_state_indices != NULL ? template_integer(call->output_state_indices, b) : read;
    if (!in_pool(call->state_pool, read)) { /* E6: a padded sequence */
      template_clear_row(call->output, 1, template_at(call->output, b));
      continue;
    }
    for (int64_t head = 0; head < call->output->shape[2]; ++head) run_head(call, b, head, read, write, workspace);
  }
}
