// The ops of the case format, one short function each (case format: Ops).
#include "run_op.h"

#include "read_index.h"
#include "tensor_text.h"

#include <quire/check.h>
#include <quire/pages.h>

#include <fmt/format.h>

namespace quire::conformance {

using nlohmann::json;

namespace {

Output optional(std::string name, const Tensor& tensor) {
  if (tensor.defined()) return {std::move(name), tensor};
  return {std::move(name), json()};
}

void add(Outputs& outputs, std::string name, const Tensor& tensor) {
  if (tensor.defined()) outputs.push_back({std::move(name), tensor});
}

Pool pool_of(const Tensor& tensor) { return tensor.defined() ? Pool::in_place(tensor) : Pool(); }

// `index`: what the builders made.
Outputs run_index(Fields& fields, const On&) {
  const Index index = read_index(fields);
  fields.finish();
  Outputs outputs;
  outputs.push_back({"kind", json(std::string(name(index.kind())))});
  outputs.push_back({"pos", index.pos()});
  outputs.push_back(optional("table", index.table()));
  outputs.push_back(optional("row", index.row()));
  json every;
  for (const BlockTable& blocks : index.block_tables()) every.push_back({{"m", blocks.block_size}, {"blocks", tensor_json(blocks.blocks)}});
  outputs.push_back({"every", every});
  outputs.push_back({"reads", json(index.reads())});
  outputs.push_back({"window", index.window_size() ? json(*index.window_size()) : json()});
  outputs.push_back(optional("columns", index.columns()));
  json draft;
  if (index.draft_tokens()) draft = {{"slots", tensor_json(index.draft_tokens()->slots)}, {"sees", tensor_json(index.draft_tokens()->sees)}};
  outputs.push_back({"draft", draft});
  return outputs;
}

Outputs run_positions(Fields& fields, const On& on) {
  const Index index = read_index(fields);
  fields.finish();
  return {{"positions", positions(index, on)}};
}

Outputs run_mask(Fields& fields, const On& on) {
  const Index index = read_index(fields);
  fields.finish();
  return {{"mask", mask(index, on)}};
}

Outputs run_extend(Fields& fields, const On& on) {
  const Index index = read_index(fields);
  const Tensor values = fields.tensor("values", FieldKind::real);
  const Tensor pool = fields.optional_writable("pool");
  fields.finish();
  const Extended extended = extend(index, values, pool_of(pool), on);
  Outputs outputs{{"seen", extended.seen}};
  add(outputs, "pool", extended.pool);
  return outputs;
}

Outputs run_attend(Fields& fields, const On& on) {
  const Index index = read_index(fields);
  const Tensor q = fields.tensor("q", FieldKind::real);
  const Tensor k = fields.tensor("k", FieldKind::real);
  const Tensor v = fields.tensor("v", FieldKind::real);
  const Tensor k_pool = fields.optional_writable("k_pool");
  const Tensor v_pool = fields.optional_writable("v_pool");
  const AttendOptions options{fields.optional_number("scale"), fields.optional_number("softcap"), fields.optional_tensor("sinks", FieldKind::real)};
  fields.finish();
  const Attended attended = attend(index, q, k, v, pool_of(k_pool), pool_of(v_pool), options, on);
  Outputs outputs{{"out", attended.out}, {"lse", attended.lse}};
  add(outputs, "k_pool", attended.k_pool);
  add(outputs, "v_pool", attended.v_pool);
  return outputs;
}

GdnInputs read_gdn_inputs(Fields& fields) {
  GdnInputs inputs;
  inputs.q = fields.tensor("q", FieldKind::real);
  inputs.k = fields.tensor("k", FieldKind::real);
  inputs.v = fields.tensor("v", FieldKind::real);
  inputs.g = fields.optional_tensor("g", FieldKind::real);
  inputs.beta = fields.optional_tensor("beta", FieldKind::real);
  inputs.scale = fields.optional_number("scale");
  inputs.use_qk_l2norm = fields.optional_boolean("use_qk_l2norm");
  return inputs;
}

Outputs state_outputs(const GdnStates& states) { return {{"output", states.output}, {"state_pool", states.state_pool}}; }

Outputs run_gdn_prefill(Fields& fields, const On& on) {
  GdnPrefill call;
  call.inputs = read_gdn_inputs(fields);
  call.cu_seqlens = fields.tensor("cu_seqlens", FieldKind::index);
  call.initial_state = fields.optional_tensor("initial_state", FieldKind::real);
  call.state_indices = fields.optional_tensor("state_indices", FieldKind::index);
  call.output_state = pool_of(fields.optional_writable("output_state"));
  call.output_state_indices = fields.optional_tensor("output_state_indices", FieldKind::index);
  call.output_final_state = fields.optional_boolean("output_final_state").value_or(false);
  call.checkpoint_every_n_tokens = fields.optional_integer("checkpoint_every_n_tokens");
  call.state_checkpoints = pool_of(fields.optional_writable("state_checkpoints"));
  call.checkpoint_cu_starts = fields.optional_tensor("checkpoint_cu_starts", FieldKind::index);
  call.checkpoint_state_indices = fields.optional_tensor("checkpoint_state_indices", FieldKind::index);
  call.prefix_lens = fields.optional_tensor("prefix_lens", FieldKind::index);
  fields.finish();
  const GdnPrefilled prefilled = gdn_prefill(std::move(call), on);
  Outputs outputs{{"output", prefilled.output}};
  add(outputs, "output_state", prefilled.output_state);
  add(outputs, "state_checkpoints", prefilled.state_checkpoints);
  return outputs;
}

GdnDecode read_decode(Fields& fields) {
  GdnDecode call;
  call.inputs = read_gdn_inputs(fields);
  call.A_log = fields.optional_tensor("A_log", FieldKind::real);
  call.a = fields.optional_tensor("a", FieldKind::real);
  call.dt_bias = fields.optional_tensor("dt_bias", FieldKind::real);
  call.b = fields.optional_tensor("b", FieldKind::real);
  call.state_pool = pool_of(fields.writable("state_pool"));
  return call;
}

Outputs run_gdn_decode(Fields& fields, const On& on) {
  GdnDecode call = read_decode(fields);
  call.state_indices = fields.tensor("state_indices", FieldKind::index);
  call.output_state_indices = fields.optional_tensor("output_state_indices", FieldKind::index);
  fields.finish();
  return state_outputs(gdn_decode(std::move(call), on));
}

PagedSequences read_pages(Fields& fields) {
  return {fields.tensor("page_indices", FieldKind::index), fields.tensor("page_indptr", FieldKind::index),
          fields.tensor("last_page_len", FieldKind::index), fields.integer("page_size")};
}

Outputs run_gdn_prefill_slots(Fields& fields, const On& on) {
  const Tensor cu_seqlens = fields.tensor("cu_seqlens", FieldKind::index);
  const PagedSequences pages = read_pages(fields);
  const auto num_pages = fields.optional_integer("num_pages");
  fields.finish();
  const GdnPrefillSlots slots = gdn_prefill_slots(cu_seqlens, pages, num_pages, on);
  return {{"state_indices", slots.state_indices},
          {"output_state_indices", slots.output_state_indices},
          {"prefix_lens", slots.prefix_lens},
          {"checkpoint_cu_starts", slots.checkpoint_cu_starts}};
}

Outputs run_gdn_decode_slots(Fields& fields, const On& on) {
  const PagedSequences pages = read_pages(fields);
  const auto num_pages = fields.optional_integer("num_pages");
  fields.finish();
  const GdnDecodeSlots slots = gdn_decode_slots(pages, num_pages, on);
  return {{"state_indices", slots.state_indices}, {"output_state_indices", slots.output_state_indices}};
}

// A paged call knows its pool; a stated size must be the pool's.
void require_pages(Fields& fields, const Tensor& pool) {
  const auto num_pages = fields.optional_integer("num_pages");
  if (num_pages && pool.rank() > 0 && *num_pages != pool.size(0)) {
    reject("num_pages", fmt::format("{}", *num_pages), fmt::format("{}, the rows of state_pool", pool.size(0)));
  }
}

Outputs run_gdn_prefill_paged(Fields& fields, const On& on) {
  const GdnInputs inputs = read_gdn_inputs(fields);
  const Tensor cu_seqlens = fields.tensor("cu_seqlens", FieldKind::index);
  const Tensor pool = fields.writable("state_pool");
  const PagedSequences pages = read_pages(fields);
  require_pages(fields, pool);
  fields.finish();
  const GdnStates states = gdn_prefill_paged(inputs, cu_seqlens, Pool::in_place(pool), pages, nullptr, on);
  fields.keep(states.working);
  return state_outputs(states);
}

Outputs run_gdn_decode_paged(Fields& fields, const On& on) {
  GdnDecode call = read_decode(fields);
  const PagedSequences pages = read_pages(fields);
  require_pages(fields, call.state_pool.given());
  fields.finish();
  const GdnStates states = gdn_decode_paged(std::move(call), pages, nullptr, on);
  fields.keep(states.working);
  return state_outputs(states);
}

Outputs run_gdn_verify(Fields& fields, const On& on) {
  const Index index = read_index(fields);
  const GdnInputs inputs = read_gdn_inputs(fields);
  const Tensor pool = fields.writable("state_pool");
  const Tensor state_indices = fields.tensor("state_indices", FieldKind::index);
  const Tensor state_slots = fields.tensor("state_slots", FieldKind::index);
  fields.finish();
  return state_outputs(gdn_verify(index, inputs, Pool::in_place(pool), state_indices, state_slots, on));
}

Outputs run_page_table(Fields& fields, const On&) {
  const Index index = read_index(fields);
  const std::int64_t page_size = fields.integer("page_size");
  std::optional<std::vector<std::int64_t>> scratch;
  if (fields.has("scratch")) scratch = fields.integers("scratch");
  fields.finish();
  const PageTable table = PageTable::from(index, page_size, std::move(scratch));
  return {{"cu_seqlens", table.cu_seqlens}, {"page_indices", table.page_indices}, {"page_indptr", table.page_indptr}, {"last_page_len", table.last_page_len}};
}

Outputs run_check(Fields& fields, const On&) {
  const Index index = read_index(fields);
  const auto slots = fields.optional_integer("slots");
  fields.finish();
  json findings = json::array();
  const auto number = [](const std::optional<std::int64_t>& value) { return value ? json(*value) : json(); };
  for (const Finding& finding : check(index, slots)) {
    findings.push_back({{"kind", finding.kind},
                        {"lane", number(finding.lane)},
                        {"row", number(finding.row)},
                        {"column", number(finding.column)},
                        {"message", finding.message}});
  }
  return {{"findings", findings}};
}

struct Op {
  std::string name;
  Outputs (*run)(Fields&, const On&);
};

const std::vector<Op>& ops() {
  static const std::vector<Op> all = {{"index", run_index},
                                      {"positions", run_positions},
                                      {"mask", run_mask},
                                      {"extend", run_extend},
                                      {"attend", run_attend},
                                      {"gdn_prefill", run_gdn_prefill},
                                      {"gdn_decode", run_gdn_decode},
                                      {"gdn_prefill_slots", run_gdn_prefill_slots},
                                      {"gdn_decode_slots", run_gdn_decode_slots},
                                      {"gdn_prefill_paged", run_gdn_prefill_paged},
                                      {"gdn_decode_paged", run_gdn_decode_paged},
                                      {"gdn_verify", run_gdn_verify},
                                      {"page_table", run_page_table},
                                      {"check", run_check}};
  return all;
}

}  // namespace

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Op& op : ops()) list.push_back(op.name);
    return list;
  }();
  return names;
}

Outputs run_op(const std::string& name, Fields& fields, const On& on) {
  for (const Op& op : ops()) {
    if (op.name == name) return op.run(fields, on);
  }
  reject("op", "\"" + name + "\"", fmt::format("{}", fmt::join(op_names(), ", ")));
}

}  // namespace quire::conformance
