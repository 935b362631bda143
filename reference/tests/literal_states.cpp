// The literal implementation of gdn_prefill's and gdn_decode's arguments: E3, E6, E7, E9.
#include <cmath>

#include "literal_parts.h"

namespace quire_literal {

namespace {

const char* const raw_names[] = {"A_log", "a", "dt_bias", "b"};

// E3: softplus is x itself past 20.
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Tensor raw_gate(Fields& fields, const std::string& name, const std::vector<Int>& shape) {
  Tensor tensor = *fields.tensor(name);
  if (!wide_float(tensor.dtype)) reject(name, "dtype not f16, bf16, f32 or f64");
  if (tensor.shape != shape) reject(name, "wrong shape");
  return tensor;
}

// E6, E8: a pool of states. Without row numbers there is one row for each sequence.
Shared state_rows(Fields& fields, const std::string& name, const Gated& in, Int sequences,
                  bool numbered) {
  const Shared pool = fields.optional_tensor(name);
  if (!pool) return pool;
  require_state(*pool, in, name);
  if (!numbered && pool->shape[0] != sequences) reject(name, "not one row for each sequence");
  return pool;
}

// E9: output_state_indices needs state_indices, output_state and output_final_state.
void require_output_rows(const Fields& fields, const Prefill& how) {
  if (!fields.has("output_state_indices")) return;
  if (!fields.has("state_indices") || !fields.has("output_state") || !how.store_final) {
    reject("output_state_indices", "needs state_indices, output_state and output_final_state");
  }
}

// E7: an interval needs both state_checkpoints and checkpoint_cu_starts, and they need an interval.
void require_interval(Fields& fields, Prefill& how) {
  if (!fields.has("checkpoint_every_n_tokens")) {
    for (const char* name : {"state_checkpoints", "checkpoint_cu_starts",
                             "checkpoint_state_indices", "prefix_lens"}) {
      if (fields.has(name)) reject(name, "without checkpoint_every_n_tokens");
    }
    return;
  }
  how.interval = fields.integer("checkpoint_every_n_tokens");
  if (how.interval <= 0 || how.interval % 64 != 0) {
    reject("checkpoint_every_n_tokens", "not a positive multiple of 64");
  }
  for (const char* name : {"state_checkpoints", "checkpoint_cu_starts"}) {
    if (!fields.has(name)) reject(name, "missing");
  }
}

// E7: checkpoint_cu_starts has n entries, or n + 1 of which the last is not read.
std::vector<Int> checkpoint_starts(Fields& fields, Int sequences) {
  const std::vector<Int> starts = fields.int_list("checkpoint_cu_starts", -1);
  const Int count = static_cast<Int>(starts.size());
  if (count != sequences && count != sequences + 1) {
    reject("checkpoint_cu_starts", "not one for each sequence");
  }
  return starts;
}

// E7: sequence i has (prefix+len)/n - prefix/n checkpoints. E9: each has its place in
// checkpoint_state_indices or, without them, in state_checkpoints.
void require_checkpoint_places(const Prefill& how) {
  const Wide places = how.checkpoint_rows ? static_cast<Int>(how.checkpoint_rows->size())
                                          : how.checkpoints->shape[0];
  for (std::size_t i = 0; i + 1 < how.cu_seqlens.size(); ++i) {
    const Wide prefix = how.prefix ? (*how.prefix)[i] : 0;
    const Wide length = how.cu_seqlens[i + 1] - how.cu_seqlens[i];
    const Wide count = (prefix + length) / how.interval - prefix / how.interval;
    if (count == 0) continue;
    const Wide first = how.checkpoint_starts[i];
    if (first < 0 || first + count > places) {
      reject("checkpoint_cu_starts", "a checkpoint has no place");
    }
  }
}

void read_checkpoints(Fields& fields, const Gated& in, Int sequences, Prefill& how) {
  how.checkpoints = fields.tensor("state_checkpoints");
  require_state(*how.checkpoints, in, "state_checkpoints");
  how.checkpoint_starts = checkpoint_starts(fields, sequences);
  if (fields.has("checkpoint_state_indices")) {
    how.checkpoint_rows = fields.int_list("checkpoint_state_indices", -1);
  }
  if (fields.has("prefix_lens")) {
    how.prefix = fields.int_list("prefix_lens", sequences);
    for (Int prefix : *how.prefix) {
      if (prefix < 0) reject("prefix_lens", "negative");
    }
  }
  require_checkpoint_places(how);
}

// E4: a final state that the call itself allocates, float32 [n,H,V,K]; row i is sequence i's.
Tensor allocated_final(const Gated& in, Prefill& how, Shared& allocated) {
  const Int sequences = static_cast<Int>(how.cu_seqlens.size()) - 1;
  allocated = std::make_shared<Tensor>(zeros("f32", {sequences, in.heads, in.value, in.key}));
  std::vector<Int> own_rows;
  for (Int i = 0; i < sequences; ++i) {
    const Int row = how.read_rows ? (*how.read_rows)[static_cast<std::size_t>(i)] : i;
    store_state(allocated, i, read_state(how.initial, row, in));
    own_rows.push_back(i);
  }
  how.output = allocated;
  how.write_rows = own_rows;
  return run_prefill(in, how);
}

}  // namespace

bool any_raw_gate(const Fields& fields) {
  for (const char* name : raw_names) {
    if (fields.has(name)) return true;
  }
  return false;
}

// E3: g = exp(-exp(A_log) * softplus(a + dt_bias)), beta = sigmoid(b). All four, or none; and not
// beside g or beta.
void read_raw_gates(Fields& fields, Gated& in) {
  if (!any_raw_gate(fields)) return;
  for (const char* name : raw_names) {
    if (fields.has(name) && (in.g || in.beta)) reject(name, "beside g or beta");
  }
  for (const char* name : raw_names) {
    if (!fields.has(name)) reject(name, "missing");
  }
  const Tensor A_log = raw_gate(fields, "A_log", {in.heads});
  const Tensor a = raw_gate(fields, "a", {in.tokens, 1, in.heads});
  const Tensor dt_bias = raw_gate(fields, "dt_bias", {in.heads});
  const Tensor b = raw_gate(fields, "b", {in.tokens, 1, in.heads});
  for (Int n = 0; n < in.tokens; ++n) {
    for (Int h = 0; h < in.heads; ++h) {
      const double x = real_at(a, {n, 0, h}) + real_at(dt_bias, {h});
      in.raw_g.push_back(std::exp(-std::exp(real_at(A_log, {h})) * softplus(x)));
      in.raw_beta.push_back(sigmoid(real_at(b, {n, 0, h})));
    }
  }
}

void op_gdn_prefill(Fields& fields, Result& result) {
  const Gated in = read_gated(fields, 1, true, false);
  Prefill how;
  how.cu_seqlens = read_cu_seqlens(fields, in.tokens);
  const Int sequences = static_cast<Int>(how.cu_seqlens.size()) - 1;
  const bool numbered = fields.has("state_indices");
  how.store_final = fields.flag("output_final_state", false);
  how.initial = state_rows(fields, "initial_state", in, sequences, numbered);
  if (numbered) how.read_rows = fields.int_list("state_indices", sequences);
  how.output = state_rows(fields, "output_state", in, sequences, numbered);
  require_output_rows(fields, how);
  if (fields.has("output_state_indices")) {
    how.write_rows = fields.int_list("output_state_indices", sequences);
  }
  require_interval(fields, how);
  if (how.interval != 0) read_checkpoints(fields, in, sequences, how);

  Shared final_state = how.output;
  const bool allocate = how.store_final && !how.output;
  result.add("output", allocate ? allocated_final(in, how, final_state) : run_prefill(in, how));
  if (final_state) result.add("output_state", final_state);
  if (how.checkpoints) result.add("state_checkpoints", how.checkpoints);
}

void op_gdn_decode(Fields& fields, Result& result) {
  Gated in = read_gated(fields, 2, false, true);
  if (in.q.shape[1] != 1) reject("q", "decode takes one token");
  read_raw_gates(fields, in);
  const Shared pool = fields.tensor("state_pool");
  require_state(*pool, in, "state_pool");
  const std::vector<Int> read_rows = fields.int_list("state_indices", in.tokens);
  std::vector<Int> write_rows = read_rows;  // E6: absent, the read row
  if (fields.has("output_state_indices")) {
    write_rows = fields.int_list("output_state_indices", in.tokens);
  }
  result.add("output", run_decode(in, pool, read_rows, write_rows));
  result.add("state_pool", pool);
}

}  // namespace quire_literal
