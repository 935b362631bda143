// Captured steps.
#include <quire/staging.h>
#include <quire/step.h>

#include "layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

namespace quire {

namespace {

quire_device abi(Device device) { return {device.type, device.id}; }

std::string text_of(const quire_tensor& tensor) {
  const auto axes = static_cast<std::size_t>(tensor.rank);
  const std::string shape = to_string(std::span(tensor.shape, axes));
  const Shape dense = dense_strides(std::span(tensor.shape, axes));
  const bool is_dense = std::equal(dense.begin(), dense.end(), tensor.strides);
  return fmt::format("{}{}{} on {}", name(static_cast<DType>(tensor.dtype)), shape,
                     is_dense ? std::string() : " strides " + to_string(std::span(tensor.strides, axes)),
                     to_string(Device{tensor.device.type, tensor.device.id}));
}

// The scalars of a call, by the args struct's fields.
std::vector<std::pair<std::string, std::string>> scalars_of(const Call& call) {
  const auto exact = [](double x) { return fmt::format("{}", x); };
  switch (call.op()) {
    case QUIRE_OP_ATTEND: {
      const auto& args = *static_cast<const quire_attend_args*>(call.args());
      return {{"scale", exact(args.scale)}, {"softcap", exact(args.softcap)}};
    }
    case QUIRE_OP_GDN_PREFILL: {
      const auto& args = *static_cast<const quire_gdn_prefill_args*>(call.args());
      return {{"checkpoint_every_n_tokens", fmt::format("{}", args.checkpoint_every_n_tokens)},
              {"scale", exact(args.scale)},
              {"use_qk_l2norm", fmt::format("{}", args.use_qk_l2norm)},
              {"output_state_is_fresh", fmt::format("{}", args.output_state_is_fresh)}};
    }
    case QUIRE_OP_GDN_DECODE: {
      const auto& args = *static_cast<const quire_gdn_decode_args*>(call.args());
      return {{"scale", exact(args.scale)}, {"use_qk_l2norm", fmt::format("{}", args.use_qk_l2norm)}};
    }
    case QUIRE_OP_GDN_VERIFY: {
      const auto& args = *static_cast<const quire_gdn_verify_args*>(call.args());
      return {{"scale", exact(args.scale)}, {"use_qk_l2norm", fmt::format("{}", args.use_qk_l2norm)}};
    }
    case QUIRE_OP_GDN_PREFILL_SLOTS:
    case QUIRE_OP_GDN_DECODE_SLOTS:
      return {{"page_size", fmt::format("{}", static_cast<const quire_gdn_slots_args*>(call.args())->page_size)}};
    default: return {};
  }
}

Structure key_of(const std::deque<Call>& calls) {
  Structure key;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const Call& call = calls[n];
    key.emplace_back(fmt::format("{}", n), std::string(op_name(call.op())));
    if (const quire_index* index = call.index()) {
      key.emplace_back(fmt::format("{}.index.tokens", n), std::string(name(static_cast<IndexKind>(index->kind))));
      for (std::int64_t m = 0; m < index->block_table_count; ++m) {
        key.emplace_back(fmt::format("{}.index.blocks.{}", n, m), fmt::format("{}", index->block_tables[m].block_size));
      }
      key.emplace_back(fmt::format("{}.index.every", n), fmt::format("{}", index->reads));
      key.emplace_back(fmt::format("{}.index.window", n), index->window > 0 ? fmt::format("{}", index->window) : "absent");
    }
    for (const CallTensor& entry : call.tensors()) key.emplace_back(fmt::format("{}.{}", n, entry.name), text_of(*entry.tensor));
    for (auto& [field, value] : scalars_of(call)) key.emplace_back(fmt::format("{}.{}", n, field), std::move(value));
  }
  return key;
}

// The tensors of an index in one order, for indices of equal structure.
std::vector<Tensor> tensors_of(const Index& index) {
  std::vector<Tensor> tensors;
  const auto take = [&](const Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  };
  take(index.pos());
  take(index.table());
  take(index.row());
  for (const BlockTable& blocks : index.block_tables()) take(blocks.blocks);
  take(index.columns());
  if (index.draft_tokens()) {
    take(index.draft_tokens()->slots);
    take(index.draft_tokens()->sees);
  }
  return tensors;
}

std::string text_of(const Tensor& tensor) { return tensor.defined() ? text_of(tensor.view()) : "nothing"; }

}  // namespace

std::string difference(const Structure& captured, const Structure& given) {
  std::string text;
  const auto add = [&](std::string_view what, std::string_view was, std::string_view is) {
    text += fmt::format("{}{}: {} captured, {} given", text.empty() ? "" : "; ", what, was, is);
  };
  // Names come in one order, so a walk that skips what only one of them has finds the pairs.
  std::size_t i = 0, j = 0;
  while (i < captured.size() || j < given.size()) {
    const bool both = i < captured.size() && j < given.size();
    if (both && captured[i].first == given[j].first) {
      if (captured[i].second != given[j].second) add(captured[i].first, captured[i].second, given[j].second);
      ++i, ++j;
      continue;
    }
    const bool later_given =
        i < captured.size() && std::any_of(given.begin() + static_cast<std::ptrdiff_t>(j), given.end(), [&](const auto& entry) { return entry.first == captured[i].first; });
    if (i < captured.size() && !later_given) {
      add(captured[i].first, captured[i].second, "absent");
      ++i;
    } else {
      add(given[j].first, "absent", given[j].second);
      ++j;
    }
  }
  return text;
}

struct Step::State {
  State(const Backend& of, Device on, bool stages) : backend(&of), device(on), stage(stages) {}
  ~State() {
    if (handle != nullptr) (void)backend->table().step_free(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Backend* backend;
  Device device;
  bool stage;
  std::deque<Call> calls;             // addresses stay
  std::vector<Tensor> kept;           // alive as long as the step
  Structure key;
  std::vector<quire_tensor> tensors;  // the step's, as captured: where their bindings are looked up
  std::vector<MemorySpan> spans;      // the calls' memory on the host, where it is staged
  std::unique_ptr<Staging> staging;
  quire_step* handle = nullptr;
};

const Structure& Step::key() const { return state_->key; }

void Step::launch(const Stream* stream, const Bindings& bindings) const {
  State& state = *state_;
  if (stream != nullptr && (&stream->backend() != state.backend || !(stream->device() == state.device))) {
    reject("stream", fmt::format("a stream of backend {} on {}", stream->backend().name(), to_string(stream->device())),
           fmt::format("streams of backend {} on {}", state.backend->name(), to_string(state.device)));
  }
  // What lies in the first stretch lies in the second.
  struct Move {
    MemorySpan from;
    std::byte* to;
  };
  std::vector<Move> moves;
  const auto bind = [&](const Tensor& from, const Tensor& to, std::string_view argument) {
    const bool same = from.defined() && to.defined() && from.dtype() == to.dtype() && from.shape() == to.shape() && from.strides() == to.strides() &&
                      from.device() == to.device();
    if (!same) reject(argument, fmt::format("{} for a captured {}", text_of(to), text_of(from)), "equal dtype, shape, strides and device");
    if (from.elements() == 0) return;
    require_layout(to, argument);
    const quire_tensor view = from.view();
    const MemorySpan span = span_of(view);
    const bool known = std::any_of(state.tensors.begin(), state.tensors.end(), [&](const quire_tensor& tensor) { return span.holds(tensor.data); });
    if (!known) reject(argument, fmt::format("{}, which the step does not use", text_of(from)), "tensors of the captured calls");
    moves.push_back({span, to.raw()});
  };
  for (const auto& [from, to] : bindings.indices) {
    if (const std::string differs = difference(from.structure(), to.structure()); !differs.empty()) {
      reject("index", fmt::format("another structure than the captured one's: {}", differs), "an equal structure (A14)");
    }
    const Index *here = &from.on(state.stage ? Device{} : from.is_on(state.device) ? state.device : from.device()),
                *there = &to.on(here->device());
    const std::vector<Tensor> old_tensors = tensors_of(*here), new_tensors = tensors_of(*there);
    for (std::size_t n = 0; n < old_tensors.size(); ++n) bind(old_tensors[n], new_tensors[n], "index");
  }
  for (const auto& [from, to] : bindings.tensors) bind(from, to, "tensors");

  const auto moved = [&](void* data) -> std::byte* {
    for (const Move& move : moves) {
      if (move.from.holds(data)) return move.to + (static_cast<std::byte*>(data) - move.from.begin);
    }
    return static_cast<std::byte*>(data);
  };
  quire_stream* const queue = stream != nullptr ? stream->get() : nullptr;
  std::vector<quire_tensor> tensors = state.tensors;
  if (state.staging) {
    // The device's memory stays; the host's stretches move as a whole.
    for (const quire_tensor& tensor : tensors) {
      for (const MemorySpan& span : state.spans) {
        if (span.holds(tensor.data) && moved(tensor.data) - moved(span.begin) != static_cast<std::byte*>(tensor.data) - span.begin) {
          reject("tensors", "tensors that share memory in the captured calls and not here", "tensors that share it in the same way");
        }
      }
    }
    for (std::size_t n = 0; n < state.spans.size(); ++n) state.staging->stand_for(n, moved(state.spans[n].begin));
    std::vector<quire_tensor> on_device;
    for (const Call& call : state.calls) {
      for (const CallTensor& entry : call.tensors()) on_device.push_back(*entry.tensor);
    }
    tensors = std::move(on_device);
    state.staging->upload(queue);
  } else {
    for (quire_tensor& tensor : tensors) tensor.data = moved(tensor.data);
  }
  std::vector<const quire_tensor*> pointers;
  for (const quire_tensor& tensor : tensors) pointers.push_back(&tensor);
  state.backend->require(state.backend->table().launch(queue, state.handle, pointers.data(), static_cast<std::int32_t>(pointers.size())), "launch");
  if (state.staging) state.staging->download(queue);
}

Capture::Capture(const Stream& stream) : Capture(stream.backend(), stream.device()) {}
Capture::Capture(const Backend& backend, Device device, bool stage) : state_(std::make_unique<Step::State>(backend, device, stage)) {}
Capture::~Capture() = default;

On Capture::on() {
  require_open();
  On on;
  on.backend = state_->backend;
  if (state_->stage) on.stage_on = state_->device;
  on.capture = this;
  return on;
}

void Capture::record(quire_op op, const void* args, std::vector<Tensor> tensors) {
  require_open();
  state_->calls.emplace_back(op, args);
  state_->kept.insert(state_->kept.end(), std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end()));
}

void Capture::require_open() const {
  if (state_ == nullptr) reject("capture", "a finished one", "one capture for each step");
}

Structure Capture::key() const {
  require_open();
  return key_of(state_->calls);
}

Step Capture::finish() {
  require_open();
  if (state_->calls.empty()) reject("capture", "no call", "one op or more, called with Capture::on()");
  Step::State& state = *state_;
  state.key = key_of(state.calls);
  std::vector<Call*> calls;
  for (Call& call : state.calls) {
    calls.push_back(&call);
    for (const CallTensor& entry : call.tensors()) state.tensors.push_back(*entry.tensor);
  }
  if (state.stage) {
    state.spans = spans_of(calls);
    state.staging = std::make_unique<Staging>(*state.backend, state.device, nullptr, calls, state.spans);
  }
  std::vector<quire_call> views;
  for (const Call* call : calls) {
    if (const std::string reason = state.backend->unsupported_reason(call->op(), call->args()); !reason.empty()) {
      throw Error(ErrorCode::unsupported, std::string(op_name(call->op())), fmt::format("{}: unsupported by backend {}: {}", op_name(call->op()), state.backend->name(), reason));
    }
    views.push_back({sizeof(quire_call), call->op(), call->args()});
  }
  state.backend->require(state.backend->table().capture(abi(state.device), views.data(), static_cast<std::int32_t>(views.size()), &state.handle), "capture");
  Step step;
  step.state_ = std::move(state_);
  return step;
}

}  // namespace quire
