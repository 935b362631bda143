// The ops: check, allocate results, hand the call to a backend.
#include <quire/check.h>
#include <quire/index_view.h>
#include <quire/ops.h>
#include <quire/staging.h>
#include <quire/step.h>

#include "layout.h"
#include "validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
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

// What a call's args struct points to, and the tensors behind it.
class Views {
 public:
  // The ABI's view of an optional tensor: null where it is undefined.
  const quire_tensor* operator()(const Tensor& tensor) {
    if (!tensor.defined()) return nullptr;
    return &views_.emplace_back(tensors_.emplace_back(tensor).view());
  }
  const quire_index* operator()(const Index& index) { return index_.emplace(index).get(); }

  /// To be kept alive by a captured step.
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all(tensors_.begin(), tensors_.end());
    if (index_) index_->keep(all);
    return all;
  }

 private:
  std::deque<Tensor> tensors_;  // addresses stay
  std::deque<quire_tensor> views_;
  std::optional<IndexAbi> index_;
};

// Where a call runs.
class Site {
 public:
  // `device`: its tensors'.
  Site(const On& on, Device device) : on_(on), backend_(backend_of_call(on)), device_(device) {
    if (device.is_host()) {
      is_staged_ = on.stage_on.has_value();
      if (!is_staged_ && backend_.first_device().reads_host == 0) {
        throw Error(ErrorCode::unsupported, "device",
                    fmt::format("device: host tensors; allowed on backend {}: tensors on its devices (quire::copy_to), or On::stage_on", backend_.name()));
      }
    } else if (!has_device(backend_, device)) {
      throw Error(ErrorCode::unsupported, "device", fmt::format("device: tensors on {}; allowed on backend {}: its own devices (quire backends)", to_string(device), backend_.name()));
    } else if (on.stream != nullptr && !(on.stream->device() == device)) {
      reject("stream", fmt::format("a stream on {}", to_string(on.stream->device())), fmt::format("streams on {}, where the tensors lie", to_string(device)));
    }
  }

  // An op whose only tensors are an index's: on the stream's device where the index lies there.
  static Site of(const On& on, const Index& index) {
    const bool has_place = on.stream != nullptr && !on.stage_on && index.is_on(on.stream->device());
    return {on, has_place ? on.stream->device() : index.device()};
  }

  const Index& here(const Index& index) const { return index.on(device_); }
  Tensor result(DType dtype, Shape shape, std::string_view argument) const {
    return empty_on(backend_, device_, dtype, std::move(shape), on_.stream, argument);
  }
  // The memory of a pool that the call writes.
  Tensor target(Pool& pool, std::string_view argument) const {
    if (on_.capture != nullptr && pool.defined() && !pool.is_in_place()) {
      reject(argument, "a pool to be copied", "pools changed in place (Pool::in_place) in a captured step");
    }
    if (pool.defined() && !pool.is_in_place() && !device_.is_host()) pool = Pool::in_place(copy_to(pool.given(), backend_, device_, on_.stream));
    return pool.target();
  }

  void run(quire_op op, const void* args, const Views& views) const {
    if (on_.capture != nullptr) return on_.capture->record(op, args, views.tensors());
    quire_stream* const queue = on_.stream != nullptr ? on_.stream->get() : nullptr;
    if (!is_staged_) {
      std::optional<quire_device> device;
      if (on_.stream != nullptr) device = quire_device{on_.stream->device().type, on_.stream->device().id};
      return backend_.run(queue, op, args, device);
    }
    Call call(op, args);
    Call* const calls[] = {&call};
    const Staging staging(backend_, *on_.stage_on, queue, calls, spans_of(calls));
    staging.upload(queue);
    backend_.run(queue, op, call.args());
    staging.download(queue);
  }

 private:
  static bool has_device(const Backend& backend, Device device) {
    const std::vector<quire_device_info> devices = backend.devices();
    return std::any_of(devices.begin(), devices.end(), [&](const quire_device_info& info) { return Device{info.device.type, info.device.id} == device; });
  }
  static const Backend& backend_of_call(const On& on) {
    if (on.stream == nullptr) return on.backend != nullptr ? *on.backend : default_backend();
    if (on.backend != nullptr && on.backend != &on.stream->backend()) {
      reject("stream", fmt::format("a stream of backend {}", on.stream->backend().name()), fmt::format("streams of backend {}", on.backend->name()));
    }
    return on.stream->backend();
  }

  const On& on_;
  const Backend& backend_;
  Device device_;
  bool is_staged_ = false;
};

// QUIRE_CHECK=1: says on standard error which obligations on the index the caller broke (F3); the call goes on as ever.
void report_broken_obligations(const Index& index, const Tensor& pool) {
  if (!index.device().is_host()) return;
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

On on_host_tensors(const Backend& backend, const Stream* stream) {
  On on;
  on.backend = &backend;
  on.stream = stream;
  const quire_device_info first = backend.first_device();
  if (first.reads_host == 0) on.stage_on = stream != nullptr ? stream->device() : Device{first.device.type, first.device.id};
  return on;
}

Tensor positions(const Index& index, const On& on) {
  const Site site = Site::of(on, index);
  Tensor out = site.result(DType::i64, {index.batch(), index.seq()}, "positions");
  Views view;
  const quire_positions_args args{sizeof args, view(site.here(index)), view(out)};
  site.run(QUIRE_OP_POSITIONS, &args, view);
  return out;
}

Tensor next_positions(const Index& index, const On& on) {
  if (!index.is_tabled()) reject("advance", fmt::format("a {} index", name(index.kind())), "a tabled index");
  const Site site = Site::of(on, index);
  Tensor out = site.result(DType::i64, {index.batch(), 1}, "positions");
  Views view;
  const quire_advance_args args{sizeof args, view(site.here(index)), view(out)};
  site.run(QUIRE_OP_ADVANCE, &args, view);
  return out;
}

Tensor mask(const Index& index, const On& on) {
  const Site site = Site::of(on, index);
  const std::int64_t columns = index.columns().defined() ? index.columns().size(2) : index.context() + (index.draft_tokens() ? index.seq() : 0);
  Tensor out = site.result(DType::boolean, {index.batch(), index.seq(), columns}, "mask");
  Views view;
  const quire_mask_args args{sizeof args, view(site.here(index)), view(out)};
  site.run(QUIRE_OP_MASK, &args, view);
  return out;
}

bool visible(const Index& index, std::int64_t lane, std::int64_t token, std::int64_t column) {
  if (!index.device().is_host()) throw Error(ErrorCode::unsupported, "index", "index: its tensors lie on a device; allowed: host tensors");
  if (lane < 0 || lane >= index.batch() || token < 0 || token >= index.seq() || column < 0) return false;
  const IndexAbi abi(index);
  const IndexView view(*abi.get());
  if (!view.is_selecting()) return view.sees(lane, token, column);
  return column < view.choices() && view.sees(lane, token, view.choice(lane, token, column));  // B5
}

Extended extend(const Index& index, const Tensor& values, Pool pool, const On& on) {
  validate::extend(index, values, pool);
  const Site site(on, values.device());
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
  result.seen = site.result(values.dtype(), std::move(shape), "seen");
  result.pool = site.target(pool, "pool");
  Views view;
  const quire_extend_args args{sizeof args, view(site.here(index)), view(values), index.is_tabled() ? view(result.pool) : nullptr, view(result.seen)};
  site.run(QUIRE_OP_EXTEND, &args, view);
  return result;
}

Attended attend(const Index& index, const Tensor& q, const Tensor& k, const Tensor& v, Pool k_pool, Pool v_pool,
                const AttendOptions& options, const On& on) {
  validate::attend(index, q, k, v, k_pool, v_pool, options);
  const Site site(on, q.device());
  report_broken_obligations(index, k_pool.given());
  Attended result;
  result.out = site.result(q.dtype(), {index.batch(), index.seq(), q.size(2), v.size(3)}, "out");
  result.lse = site.result(DType::f32, {index.batch(), index.seq(), q.size(2)}, "lse");
  result.k_pool = site.target(k_pool, "k_pool");
  result.v_pool = site.target(v_pool, "v_pool");
  Views view;
  const bool tabled = index.is_tabled();
  const quire_attend_args args{sizeof args, view(site.here(index)), view(q), view(k), view(v), tabled ? view(result.k_pool) : nullptr,
                               tabled ? view(result.v_pool) : nullptr, view(options.sinks), view(result.out), view(result.lse),
                               default_scale(options.scale, q.size(3)), options.softcap.value_or(0)};
  site.run(QUIRE_OP_ATTEND, &args, view);
  return result;
}

GdnPrefilled gdn_prefill(GdnPrefill prefill, const On& on) {
  const validate::GdnSizes sizes = validate::gdn_prefill(prefill);
  const GdnInputs& inputs = prefill.inputs;
  const Site site(on, inputs.q.device());
  const std::int64_t n = prefill.cu_seqlens.size(0) - 1;
  GdnPrefilled result;
  result.output = site.result(inputs.q.dtype(), {sizes.lead[0], sizes.heads, sizes.value_size}, "output");
  const bool fresh = prefill.output_final_state && !prefill.output_state.defined();
  if (fresh) {
    result.output_state = site.result(DType::f32, {n, sizes.heads, sizes.value_size, sizes.key_size}, "output_state");
  }
  // One pool given as both keeps being one, also where the call works on a copy.
  const bool one_pool = prefill.output_state.defined() && prefill.state_checkpoints.defined() &&
                        same_memory(prefill.output_state.given(), prefill.state_checkpoints.given());
  if (prefill.output_state.defined()) result.output_state = site.target(prefill.output_state, "output_state");
  if (prefill.state_checkpoints.defined()) {
    result.state_checkpoints = one_pool ? result.output_state : site.target(prefill.state_checkpoints, "state_checkpoints");
  }
  const double scale = inputs.scale.value_or(0) == 0 ? default_scale({}, sizes.key_size) : *inputs.scale;
  Views view;
  const quire_gdn_prefill_args args{sizeof args,
                                    view(inputs.q),
                                    view(inputs.k),
                                    view(inputs.v),
                                    view(inputs.g),
                                    view(inputs.beta),
                                    view(prefill.cu_seqlens),
                                    view(prefill.initial_state),
                                    view(prefill.state_indices),
                                    prefill.output_final_state ? view(result.output_state) : nullptr,
                                    view(prefill.output_state_indices),
                                    view(result.state_checkpoints),
                                    view(prefill.checkpoint_cu_starts),
                                    view(prefill.checkpoint_state_indices),
                                    view(prefill.prefix_lens),
                                    view(result.output),
                                    prefill.checkpoint_every_n_tokens.value_or(0),
                                    scale,
                                    inputs.use_qk_l2norm.value_or(false) ? 1 : 0,
                                    fresh ? 1 : 0};
  site.run(QUIRE_OP_GDN_PREFILL, &args, view);
  return result;
}

namespace {

// After validation.
GdnStates decode(GdnDecode& call, const validate::GdnSizes& sizes, const On& on) {
  const GdnInputs& inputs = call.inputs;
  const Site site(on, inputs.q.device());
  GdnStates result;
  result.output = site.result(inputs.q.dtype(), {sizes.lead[0], 1, sizes.heads, sizes.value_size}, "output");
  result.state_pool = site.target(call.state_pool, "state_pool");
  Views view;
  const quire_gdn_decode_args args{sizeof args,
                                   view(inputs.q),
                                   view(inputs.k),
                                   view(inputs.v),
                                   view(inputs.g),
                                   view(inputs.beta),
                                   view(call.A_log),
                                   view(call.a),
                                   view(call.dt_bias),
                                   view(call.b),
                                   view(result.state_pool),
                                   view(call.state_indices),
                                   view(call.output_state_indices),
                                   view(result.output),
                                   default_scale(inputs.scale, sizes.key_size),
                                   inputs.use_qk_l2norm.value_or(true) ? 1 : 0};
  site.run(QUIRE_OP_GDN_DECODE, &args, view);
  return result;
}

}  // namespace

GdnStates gdn_decode(GdnDecode call, const On& on) {
  const validate::GdnSizes sizes = validate::gdn_decode(call, false);
  return decode(call, sizes, on);
}

GdnStates gdn_verify(const Index& index, const GdnInputs& inputs, Pool pool, const Tensor& state_indices, const Tensor& state_slots,
                     const On& on) {
  const validate::GdnSizes sizes = validate::gdn_verify(index, inputs, pool, state_indices, state_slots);
  const Site site(on, inputs.q.device());
  GdnStates result;
  result.output = site.result(inputs.q.dtype(), {sizes.lead[0], sizes.lead[1], sizes.heads, sizes.value_size}, "output");
  result.state_pool = site.target(pool, "state_pool");
  Views view;
  const quire_gdn_verify_args args{sizeof args, view(site.here(index)), view(inputs.q), view(inputs.k), view(inputs.v), view(inputs.g), view(inputs.beta),
                                   view(result.state_pool), view(state_indices), view(state_slots), view(result.output),
                                   default_scale(inputs.scale, sizes.key_size), inputs.use_qk_l2norm.value_or(true) ? 1 : 0};
  site.run(QUIRE_OP_GDN_VERIFY, &args, view);
  return result;
}

namespace {

GdnPrefillSlots prefill_slots(const Tensor& cu_seqlens, const PagedSequences& pages, std::int64_t n, const On& on) {
  const Site site(on, cu_seqlens.device());
  const auto made = [&](std::string_view argument) { return site.result(DType::i32, {n}, argument); };
  GdnPrefillSlots slots{made("state_indices"), made("output_state_indices"), made("prefix_lens"), made("checkpoint_cu_starts")};
  Views view;
  const quire_gdn_slots_args args{sizeof args, view(cu_seqlens), view(pages.page_indices), view(pages.page_indptr), view(pages.last_page_len),
                                  view(slots.state_indices), view(slots.output_state_indices), view(slots.prefix_lens),
                                  view(slots.checkpoint_cu_starts), pages.page_size};
  site.run(QUIRE_OP_GDN_PREFILL_SLOTS, &args, view);
  return slots;
}

GdnDecodeSlots decode_slots(const PagedSequences& pages, std::int64_t n, const On& on) {
  const Site site(on, pages.page_indptr.device());
  GdnDecodeSlots slots{site.result(DType::i32, {n}, "state_indices"), site.result(DType::i32, {n}, "output_state_indices")};
  Views view;
  const quire_gdn_slots_args args{sizeof args, nullptr, view(pages.page_indices), view(pages.page_indptr), view(pages.last_page_len),
                                  view(slots.state_indices), view(slots.output_state_indices), nullptr, nullptr, pages.page_size};
  site.run(QUIRE_OP_GDN_DECODE_SLOTS, &args, view);
  return slots;
}

}  // namespace

GdnPrefillSlots gdn_prefill_slots(const Tensor& cu_seqlens, const PagedSequences& pages, std::optional<std::int64_t> num_pages,
                                  const On& on) {
  const std::int64_t n = validate::prefill_pages(cu_seqlens, pages, num_pages);
  return prefill_slots(cu_seqlens, pages, n, on);
}

GdnDecodeSlots gdn_decode_slots(const PagedSequences& pages, std::optional<std::int64_t> num_pages, const On& on) {
  const std::int64_t n = validate::decode_pages(pages, num_pages);
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
  const GdnPrefillSlots rows = slots != nullptr ? *slots : prefill_slots(cu_seqlens, pages, n, on);
  call.initial_state = Site(on, inputs.q.device()).target(state_pool, "state_pool");
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
  return {std::move(result.output), std::move(result.output_state), {rows.state_indices, rows.output_state_indices, rows.prefix_lens, rows.checkpoint_cu_starts}};
}

GdnStates gdn_decode_paged(GdnDecode call, const PagedSequences& pages, const GdnDecodeSlots* slots, const On& on) {
  const validate::GdnSizes sizes = validate::gdn_decode(call, true);
  const std::int64_t n = validate::decode_pages(pages, call.state_pool.given().size(0), sizes.lead[0]);
  const GdnDecodeSlots rows = slots != nullptr ? *slots : decode_slots(pages, n, on);
  call.state_indices = rows.state_indices;
  call.output_state_indices = rows.output_state_indices;
  GdnStates result = gdn_decode(std::move(call), on);
  result.working = {rows.state_indices, rows.output_state_indices};
  return result;
}

}  // namespace quire
