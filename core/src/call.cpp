// A call at the ABI as a value.
#include <quire/call.h>
#include <quire/error.h>

#include <string>

namespace quire {

Call::Args Call::copy_args(quire_op op, const void* args) {
  switch (op) {
    case QUIRE_OP_POSITIONS: return *static_cast<const quire_positions_args*>(args);
    case QUIRE_OP_MASK: return *static_cast<const quire_mask_args*>(args);
    case QUIRE_OP_ADVANCE: return *static_cast<const quire_advance_args*>(args);
    case QUIRE_OP_EXTEND: return *static_cast<const quire_extend_args*>(args);
    case QUIRE_OP_ATTEND: return *static_cast<const quire_attend_args*>(args);
    case QUIRE_OP_GDN_PREFILL: return *static_cast<const quire_gdn_prefill_args*>(args);
    case QUIRE_OP_GDN_DECODE: return *static_cast<const quire_gdn_decode_args*>(args);
    case QUIRE_OP_GDN_VERIFY: return *static_cast<const quire_gdn_verify_args*>(args);
    case QUIRE_OP_GDN_PREFILL_SLOTS:
    case QUIRE_OP_GDN_DECODE_SLOTS: return *static_cast<const quire_gdn_slots_args*>(args);
    default: reject("op", std::to_string(op), "the ops of quire/backend.h");
  }
}

Call::Call(quire_op op, const void* args) : op_(op), args_(copy_args(op, args)) {
  std::visit([this](auto& copy) { take_all(copy); }, args_);
}

const void* Call::args() const {
  return std::visit([](const auto& copy) -> const void* { return &copy; }, args_);
}

const quire_tensor* Call::tensor(std::string_view name) const {
  for (const CallTensor& entry : tensors_) {
    if (entry.name == name) return entry.tensor;
  }
  return nullptr;
}

void Call::take(std::string_view name, TensorRole role, const quire_tensor*& field) {
  if (field == nullptr) return;
  quire_tensor& copy = copies_.emplace_back(*field);
  copy.shape = numbers_.emplace_back(field->shape, field->shape + field->rank).data();
  copy.strides = numbers_.emplace_back(field->strides, field->strides + field->rank).data();
  field = &copy;
  tensors_.push_back({name, role, &copy});
}

void Call::take_index(const quire_index*& field) {
  index_ = *field;
  has_index_ = true;
  take("index.pos", TensorRole::read, index_.pos);
  take("index.table", TensorRole::read, index_.table);
  take("index.row", TensorRole::read, index_.row);
  block_tables_.assign(index_.block_tables, index_.block_tables + index_.block_table_count);
  for (quire_block_table& blocks : block_tables_) take("index.blocks", TensorRole::read, blocks.blocks);
  index_.block_tables = block_tables_.data();
  take("index.columns", TensorRole::read, index_.columns);
  take("index.slots", TensorRole::read, index_.slots);
  take("index.sees", TensorRole::read, index_.sees);
  field = &index_;
}

void Call::take_all(quire_positions_args& args) {
  take_index(args.index);
  take("positions", TensorRole::write, args.positions);
}

void Call::take_all(quire_mask_args& args) {
  take_index(args.index);
  take("mask", TensorRole::write, args.mask);
}

void Call::take_all(quire_advance_args& args) {
  take_index(args.index);
  take("positions", TensorRole::write, args.positions);
}

void Call::take_all(quire_extend_args& args) {
  take_index(args.index);
  take("values", TensorRole::read, args.values);
  take("pool", TensorRole::update, args.pool);
  take("seen", TensorRole::write, args.seen);
}

void Call::take_all(quire_attend_args& args) {
  take_index(args.index);
  take("q", TensorRole::read, args.q);
  take("k", TensorRole::read, args.k);
  take("v", TensorRole::read, args.v);
  take("k_pool", TensorRole::update, args.k_pool);
  take("v_pool", TensorRole::update, args.v_pool);
  take("sinks", TensorRole::read, args.sinks);
  take("out", TensorRole::write, args.out);
  take("lse", TensorRole::write, args.lse);
}

void Call::take_all(quire_gdn_prefill_args& args) {
  take("q", TensorRole::read, args.q);
  take("k", TensorRole::read, args.k);
  take("v", TensorRole::read, args.v);
  take("g", TensorRole::read, args.g);
  take("beta", TensorRole::read, args.beta);
  take("cu_seqlens", TensorRole::read, args.cu_seqlens);
  take("initial_state", TensorRole::read, args.initial_state);
  take("state_indices", TensorRole::read, args.state_indices);
  take("output_state", args.output_state_is_fresh != 0 ? TensorRole::write : TensorRole::update, args.output_state);
  take("output_state_indices", TensorRole::read, args.output_state_indices);
  take("state_checkpoints", TensorRole::update, args.state_checkpoints);
  take("checkpoint_cu_starts", TensorRole::read, args.checkpoint_cu_starts);
  take("checkpoint_state_indices", TensorRole::read, args.checkpoint_state_indices);
  take("prefix_lens", TensorRole::read, args.prefix_lens);
  take("output", TensorRole::write, args.output);
}

void Call::take_all(quire_gdn_decode_args& args) {
  take("q", TensorRole::read, args.q);
  take("k", TensorRole::read, args.k);
  take("v", TensorRole::read, args.v);
  take("g", TensorRole::read, args.g);
  take("beta", TensorRole::read, args.beta);
  take("A_log", TensorRole::read, args.A_log);
  take("a", TensorRole::read, args.a);
  take("dt_bias", TensorRole::read, args.dt_bias);
  take("b", TensorRole::read, args.b);
  take("state_pool", TensorRole::update, args.state_pool);
  take("state_indices", TensorRole::read, args.state_indices);
  take("output_state_indices", TensorRole::read, args.output_state_indices);
  take("output", TensorRole::write, args.output);
}

void Call::take_all(quire_gdn_verify_args& args) {
  take_index(args.index);
  take("q", TensorRole::read, args.q);
  take("k", TensorRole::read, args.k);
  take("v", TensorRole::read, args.v);
  take("g", TensorRole::read, args.g);
  take("beta", TensorRole::read, args.beta);
  take("state_pool", TensorRole::update, args.state_pool);
  take("state_indices", TensorRole::read, args.state_indices);
  take("state_slots", TensorRole::read, args.state_slots);
  take("output", TensorRole::write, args.output);
}

void Call::take_all(quire_gdn_slots_args& args) {
  take("cu_seqlens", TensorRole::read, args.cu_seqlens);
  take("page_indices", TensorRole::read, args.page_indices);
  take("page_indptr", TensorRole::read, args.page_indptr);
  take("last_page_len", TensorRole::read, args.last_page_len);
  take("state_indices", TensorRole::write, args.state_indices);
  take("output_state_indices", TensorRole::write, args.output_state_indices);
  take("prefix_lens", TensorRole::write, args.prefix_lens);
  take("checkpoint_cu_starts", TensorRole::write, args.checkpoint_cu_starts);
}

}  // namespace quire
