// The ops: check, allocate results, hand the call to a backend.
#include <quire/check.h>
#include <quire/index_view.h>
#include <quire/ops.h>

#include "layout.h"
#include "validate.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace quire {

Pool::Pool(const Tensor& tensor) : tensor_(tensor), mode_(Mode::copied) {}

// A shared owner is copied, also one that came to be shared since: a copied struct of arguments gives nothing up.
Pool::Pool(Tensor&& tensor) : tensor_(std::move(tensor)), mode_(Mode::given_up) {}

Pool Pool::in_place(const Tensor& tensor) {
  Pool pool;
  pool.tensor_ = tensor;
  return pool;
}

const Tensor& Pool::target() {
  if (tensor_.defined() && !is_in_place()) tensor_ = tensor_.clone();
  mode_ = Mode::in_place;
  return tensor_;
}

namespace {

// The ABI's view of an optional tensor: null where it is undefined.
class View {
 public:
  explicit View(const Tensor& tensor) : defined_(tensor.defined()), view_(tensor.defined() ? tensor.view() : quire_tensor{}) {}
  explicit View(const Tensor&& tensor) = delete;  // its shape would be gone
  operator const quire_tensor*() const { return defined_ ? &view_ : nullptr; }  // NOLINT(google-explicit-constructor)

 private:
  bool defined_;
  quire_tensor view_;
};

void run(const On& on, quire_op op, const void* args) {
  (on.backend != nullptr ? *on.backend : default_backend()).run(on.stream, op, args);
}

// Before a pool is copied: what a backend can't do must not cost a copy, and what is no host index can't be made results for here.
void require_host(const Device& device) {
  if (!device.is_host()) {
    throw Error(ErrorCode::unsupported, "device", "device: results are allocated on the host only; allowed: host tensors");
  }
}

// QUIRE_CHECK=1: says on standard error which obligations on the index the caller broke (F3); the call goes on as ever.
void report_broken_obligations(const Index& index, const Tensor& pool) {
  const char* wanted = std::getenv("QUIRE_CHECK");
  if (wanted == nullptr || std::string_view(wanted) != "1") return;
  const auto slots = pool.defined() ? std::optional(pool.size(0)) : std::nullopt;
  for (const Finding& finding : check(index, slots)) {
    const auto place = [](std::string_view what, const std::optional<std::int64_t>& number) {
      return number ? fmt::format(" {} {}", what, *number) : std::string();
    };
    const std::string line = fmt::format("quire check: {}:{}{}{}: {}\n", finding.kind, place("lane", finding.lane), place("row", finding.row),
               place("column", finding.column), finding.message);
    std::fputs(line.c_str(), stderr);
  }
}

double default_scale(std::optional<double> scale, std::int64_t size) {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(size)));
}

}  // namespace

Tensor positions(const Index& index, const On& on) {
  require_host(index.device());
  const IndexAbi abi(index);
  Tensor out = Tensor::empty(DType::i64, {index.batch(), index.seq()}, "positions");
  const View view(out);
  const quire_positions_args args{sizeof args, abi.get(), view};
  run(on, QUIRE_OP_POSITIONS, &args);
  return out;
}

Tensor mask(const Index& index, const On& on) {
  require_host(index.device());
  const IndexAbi abi(index);
  const std::int64_t columns = index.columns().defined() ? index.columns().size(2) : index.context() + (index.draft_tokens() ? index.seq() : 0);
  Tensor out = Tensor::empty(DType::boolean, {index.batch(), index.seq(), columns}, "mask");
  const View view(out);
  const quire_mask_args args{sizeof args, abi.get(), view};
  run(on, QUIRE_OP_MASK, &args);
  return out;
}

bool visible(const Index& index, std::int64_t lane, std::int64_t token, std::int64_t column) {
  require_host(index.device());
  if (lane < 0 || lane >= index.batch() || token < 0 || token >= index.seq() || column < 0) return false;
  const IndexAbi abi(index);
  const IndexView view(*abi.get());
  if (!view.is_selecting()) return view.sees(lane, token, column);
  return column < view.choices() && view.sees(lane, token, view.choice(lane, token, column));  // B5
}

Extended extend(const Index& index, const Tensor& values, Pool pool, const On& on) {
  validate::extend(index, values, pool);
  require_host(values.device());
  report_broken_obligations(index, pool.given());
  Shape shape{index.batch()};
  if (index.columns().defined()) {
    shape.push_back(index.seq());
    shape.push_back(index.columns().size(2));
  } else {
    shape.push_back(index.context() + (index.draft_tokens() ? index.seq() : 0));
  }
  shape.insert(shape.end(), values.shape().begin() + 2, values.shape().end());
  Extended result;
  result.seen = Tensor::empty(values.dtype(), std::move(shape), "seen");
  result.pool = pool.target();
  const IndexAbi abi(index);
  const Tensor none;
  const View values_view(values), pool_view(index.is_tabled() ? result.pool : none), seen_view(result.seen);
  const quire_extend_args args{sizeof args, abi.get(), values_view, pool_view, seen_view};
  run(on, QUIRE_OP_EXTEND, &args);
  return result;
}

Attended attend(const Index& index, const Tensor& q, const Tensor& k, const Tensor& v, Pool k_pool, Pool v_pool,
                const AttendOptions& options, const On& on) {
  validate::attend(index, q, k, v, k_pool, v_pool, options);
  require_host(q.device());
  report_broken_obligations(index, k_pool.given());
  Attended result;
  result.out = Tensor::empty(q.dtype(), {index.batch(), index.seq(), q.size(2), v.size(3)}, "out");
  result.lse = Tensor::empty(DType::f32, {index.batch(), index.seq(), q.size(2)}, "lse");
  result.k_pool = k_pool.target();
  result.v_pool = v_pool.target();
  const IndexAbi abi(index);
  const View q_view(q), k_view(k), v_view(v), sinks_view(options.sinks), out_view(result.out), lse_view(result.lse);
  const Tensor none;
  const View k_pool_view(index.is_tabled() ? result.k_pool : none), v_pool_view(index.is_tabled() ? result.v_pool : none);
  const quire_attend_args args{sizeof args, abi.get(), q_view, k_view, v_view, k_pool_view, v_pool_view, sinks_view, out_view, lse_view,
                               default_scale(options.scale, q.size(3)), options.softcap.value_or(0)};
  run(on, QUIRE_OP_ATTEND, &args);
  return result;
}

GdnPrefilled gdn_prefill(GdnPrefill prefill, const On& on) {
  const validate::GdnSizes sizes = validate::gdn_prefill(prefill);
  const GdnInputs& inputs = prefill.inputs;
  require_host(inputs.q.device());
  const std::int64_t n = prefill.cu_seqlens.size(0) - 1;
  GdnPrefilled result;
  result.output = Tensor::empty(inputs.q.dtype(), {sizes.lead[0], sizes.heads, sizes.value_size}, "output");
  const bool fresh = prefill.output_final_state && !prefill.output_state.defined();
  if (fresh) {
    result.output_state = Tensor::empty(DType::f32, {n, sizes.heads, sizes.value_size, sizes.key_size}, "output_state");
  }
  // One pool given as both keeps being one, also where the call works on a copy.
  const bool one_pool = prefill.output_state.defined() && prefill.state_checkpoints.defined() &&
                        same_memory(prefill.output_state.given(), prefill.state_checkpoints.given());
  if (prefill.output_state.defined()) result.output_state = prefill.output_state.target();
  if (prefill.state_checkpoints.defined()) {
    result.state_checkpoints = one_pool ? result.output_state : prefill.state_checkpoints.target();
  }
  const Tensor none;
  const View q(inputs.q), k(inputs.k), v(inputs.v), g(inputs.g), beta(inputs.beta), cu_seqlens(prefill.cu_seqlens),
      initial_state(prefill.initial_state), state_indices(prefill.state_indices),
      output_state(prefill.output_final_state ? result.output_state : none), output_state_indices(prefill.output_state_indices),
      state_checkpoints(result.state_checkpoints), checkpoint_cu_starts(prefill.checkpoint_cu_starts),
      checkpoint_state_indices(prefill.checkpoint_state_indices), prefix_lens(prefill.prefix_lens), output(result.output);
  const double scale = inputs.scale.value_or(0) == 0 ? default_scale({}, sizes.key_size) : *inputs.scale;
  const quire_gdn_prefill_args args{sizeof args, q, k, v, g, beta, cu_seqlens, initial_state, state_indices, output_state,
                                    output_state_indices, state_checkpoints, checkpoint_cu_starts, checkpoint_state_indices, prefix_lens,
                                    output, prefill.checkpoint_every_n_tokens.value_or(0), scale, inputs.use_qk_l2norm.value_or(false) ? 1 : 0,
                                    fresh ? 1 : 0};
  run(on, QUIRE_OP_GDN_PREFILL, &args);
  return result;
}

namespace {

// After validation.
GdnStates decode(GdnDecode& call, const validate::GdnSizes& sizes, const On& on) {
  const GdnInputs& inputs = call.inputs;
  GdnStates result;
  result.output = Tensor::empty(inputs.q.dtype(), {sizes.lead[0], 1, sizes.heads, sizes.value_size}, "output");
  result.state_pool = call.state_pool.target();
  const View q(inputs.q), k(inputs.k), v(inputs.v), g(inputs.g), beta(inputs.beta), A_log(call.A_log), a(call.a), dt_bias(call.dt_bias),
      b(call.b), state_pool(result.state_pool), state_indices(call.state_indices), output_state_indices(call.output_state_indices),
      output(result.output);
  const quire_gdn_decode_args args{sizeof args, q, k, v, g, beta, A_log, a, dt_bias, b, state_pool, state_indices, output_state_indices,
                                   output, default_scale(inputs.scale, sizes.key_size), inputs.use_qk_l2norm.value_or(true) ? 1 : 0};
  run(on, QUIRE_OP_GDN_DECODE, &args);
  return result;
}

}  // namespace

GdnStates gdn_decode(GdnDecode call, const On& on) {
  const validate::GdnSizes sizes = validate::gdn_decode(call, false);
  require_host(call.inputs.q.device());
  return decode(call, sizes, on);
}

GdnStates gdn_verify(const Index& index, const GdnInputs& inputs, Pool pool, const Tensor& state_indices, const Tensor& state_slots,
                     const On& on) {
  const validate::GdnSizes sizes = validate::gdn_verify(index, inputs, pool, state_indices, state_slots);
  require_host(inputs.q.device());
  GdnStates result;
  result.output = Tensor::empty(inputs.q.dtype(), {sizes.lead[0], sizes.lead[1], sizes.heads, sizes.value_size}, "output");
  result.state_pool = pool.target();
  const IndexAbi abi(index);
  const View q(inputs.q), k(inputs.k), v(inputs.v), g(inputs.g), beta(inputs.beta), state_pool(result.state_pool), indices(state_indices),
      slots(state_slots), output(result.output);
  const quire_gdn_verify_args args{sizeof args, abi.get(), q, k, v, g, beta, state_pool, indices, slots, output,
                                   default_scale(inputs.scale, sizes.key_size), inputs.use_qk_l2norm.value_or(true) ? 1 : 0};
  run(on, QUIRE_OP_GDN_VERIFY, &args);
  return result;
}

namespace {

Tensor slots_tensor(std::int64_t n, std::string_view argument) { return Tensor::empty(DType::i32, {n}, argument); }

GdnPrefillSlots prefill_slots(const Tensor& cu_seqlens, const PagedSequences& pages, std::int64_t n, const On& on) {
  GdnPrefillSlots slots{slots_tensor(n, "state_indices"), slots_tensor(n, "output_state_indices"), slots_tensor(n, "prefix_lens"),
                        slots_tensor(n, "checkpoint_cu_starts")};
  const View lens(cu_seqlens), indices(pages.page_indices), indptr(pages.page_indptr), last(pages.last_page_len), read(slots.state_indices),
      write(slots.output_state_indices), prefix(slots.prefix_lens), starts(slots.checkpoint_cu_starts);
  const quire_gdn_slots_args args{sizeof args, lens, indices, indptr, last, read, write, prefix, starts, pages.page_size};
  run(on, QUIRE_OP_GDN_PREFILL_SLOTS, &args);
  return slots;
}

GdnDecodeSlots decode_slots(const PagedSequences& pages, std::int64_t n, const On& on) {
  GdnDecodeSlots slots{slots_tensor(n, "state_indices"), slots_tensor(n, "output_state_indices")};
  const View indices(pages.page_indices), indptr(pages.page_indptr), last(pages.last_page_len), read(slots.state_indices),
      write(slots.output_state_indices);
  const quire_gdn_slots_args args{sizeof args, nullptr, indices, indptr, last, read, write, nullptr, nullptr, pages.page_size};
  run(on, QUIRE_OP_GDN_DECODE_SLOTS, &args);
  return slots;
}

}  // namespace

GdnPrefillSlots gdn_prefill_slots(const Tensor& cu_seqlens, const PagedSequences& pages, std::optional<std::int64_t> num_pages,
                                  const On& on) {
  const std::int64_t n = validate::prefill_pages(cu_seqlens, pages, num_pages);
  require_host(cu_seqlens.device());
  return prefill_slots(cu_seqlens, pages, n, on);
}

GdnDecodeSlots gdn_decode_slots(const PagedSequences& pages, std::optional<std::int64_t> num_pages, const On& on) {
  const std::int64_t n = validate::decode_pages(pages, num_pages);
  require_host(pages.page_indptr.device());
  return decode_slots(pages, n, on);
}

GdnStates gdn_prefill_paged(const GdnInputs& inputs, const Tensor& cu_seqlens, Pool state_pool, const PagedSequences& pages,
                            const GdnPrefillSlots* slots, const On& on) {
  // E11: the paged call is gdn_prefill on rows that the page table names. The same pool is read, written and checkpointed.
  GdnPrefill call;
  call.inputs = inputs;
  call.cu_seqlens = cu_seqlens;
  const validate::GdnSizes sizes = validate::gdn_prefill(call);
  validate::state_pool(state_pool, sizes, inputs);
  const std::int64_t n = validate::prefill_pages(cu_seqlens, pages, state_pool.given().size(0));
  require_host(inputs.q.device());
  const GdnPrefillSlots rows = slots != nullptr ? *slots : prefill_slots(cu_seqlens, pages, n, on);
  call.initial_state = state_pool.target();
  call.state_indices = rows.state_indices;
  call.output_state = Pool::in_place(call.initial_state);
  call.output_state_indices = rows.output_state_indices;
  call.output_final_state = true;
  call.checkpoint_every_n_tokens = pages.page_size;
  call.state_checkpoints = Pool::in_place(call.initial_state);
  call.checkpoint_cu_starts = rows.checkpoint_cu_starts;
  call.checkpoint_state_indices = pages.page_indices;
  call.prefix_lens = rows.prefix_lens;
  GdnPrefilled result = gdn_prefill(std::move(call), on);
  return {std::move(result.output), std::move(result.output_state)};
}

GdnStates gdn_decode_paged(GdnDecode call, const PagedSequences& pages, const GdnDecodeSlots* slots, const On& on) {
  const validate::GdnSizes sizes = validate::gdn_decode(call, true);
  const std::int64_t n = validate::decode_pages(pages, call.state_pool.given().size(0), sizes.lead[0]);
  require_host(call.inputs.q.device());
  const GdnDecodeSlots rows = slots != nullptr ? *slots : decode_slots(pages, n, on);
  call.state_indices = rows.state_indices;
  call.output_state_indices = rows.output_state_indices;
  return gdn_decode(std::move(call), on);
}

}  // namespace quire
