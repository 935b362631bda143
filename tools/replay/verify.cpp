// The uncached computation: whole sequences, float64, with the error model beside it.
#include "verify.h"

#include "error_model.h"
#include "parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace quire::replay {

namespace {

using reference::Bounds;
using reference::parallel_for;

constexpr double float32 = 0x1p-24;

quire_contract at_least(quire_contract contract, double u) {
  contract.u_accumulate = std::max(contract.u_accumulate, u);
  contract.u_product = std::max(contract.u_product, u);
  return contract;
}

/// A tensor's view for the ABI, as long as the tensor lives.
struct Lent {
  explicit Lent(Tensor given) : tensor(std::move(given)), view(tensor.view()) {}
  Tensor tensor;
  quire_tensor view;
};

/// Every token of the request, each layer's inputs at a time.
template <typename Body>
void for_tokens(const Request& request, const Body& body) {
  constexpr std::int64_t together = 64;
  const std::int64_t tokens = request.tokens();
  parallel_for((tokens + together - 1) / together, static_cast<double>(tokens) * 3000, [&](std::int64_t part) {
    for (std::int64_t p = part * together; p < std::min((part + 1) * together, tokens); ++p) body(p, Token{request.source(p), 0});
  });
}

Bounds attention_bounds(const Request& request, const Activations& activations, std::int64_t window, const quire_contract& contract) {
  const std::int64_t n = request.tokens();
  const Tensor q = Tensor::empty(DType::f32, {1, n, Sizes::query_heads, Sizes::head}), k = Tensor::empty(DType::f32, {1, n, Sizes::kv_heads, Sizes::head}),
               v = Tensor::empty(DType::f32, {1, n, Sizes::kv_heads, Sizes::head_value});
  for_tokens(request, [&](std::int64_t p, const Token& token) {
    activations.attention(token, q.data<float>() + p * Sizes::query_heads * Sizes::head, k.data<float>() + p * Sizes::head,
                          v.data<float>() + p * Sizes::head_value);
  });
  const IndexAbi index(Index::whole(1, n).window(window));
  const Lent q_view(q), k_view(k), v_view(v);
  quire_attend_args args{};
  args.struct_size = sizeof args;
  args.index = index.get();
  args.q = &q_view.view;
  args.k = &k_view.view;
  args.v = &v_view.view;
  args.scale = 1 / std::sqrt(static_cast<double>(Sizes::head));
  return reference::attend_bounds(args, contract).out;
}

/// The output, and a state for each of the request's pages: at its end, the last one's at the request's.
reference::GdnBounds gdn_bounds(const Request& request, const Activations& activations, int layer, std::int64_t page_size, const quire_contract& contract) {
  const std::int64_t n = request.tokens(), pages = (n + page_size - 1) / page_size;
  const Tensor q = Tensor::empty(DType::f32, {n, Sizes::gdn_query_heads, Sizes::key}), k = Tensor::empty(DType::f32, {n, Sizes::gdn_query_heads, Sizes::key}),
               v = Tensor::empty(DType::f32, {n, Sizes::gdn_value_heads, Sizes::value}), g = Tensor::empty(DType::f32, {n, Sizes::gdn_value_heads}),
               beta = Tensor::empty(DType::f32, {n, Sizes::gdn_value_heads}),
               states = Tensor::empty(DType::f32, {pages, Sizes::gdn_value_heads, Sizes::value, Sizes::key});
  for_tokens(request, [&](std::int64_t p, const Token& token) {
    activations.gdn(token, layer - 1, q.data<float>() + p * Sizes::key, k.data<float>() + p * Sizes::key, v.data<float>() + p * Sizes::gdn_output,
                    g.data<float>() + p * Sizes::gdn_value_heads, beta.data<float>() + p * Sizes::gdn_value_heads);
  });
  const Tensor cu_seqlens = Tensor::of({0, n}), starts = Tensor::of({0}), last = Tensor::of({pages - 1}), none = Tensor::of({-1});
  const Lent q_view(q), k_view(k), v_view(v), g_view(g), beta_view(beta), lens(cu_seqlens), starts_view(starts), states_view(states), last_view(last), none_view(none);
  float unread = 0;
  const Lent output(Tensor::borrow(&unread, DType::f32, {n, Sizes::gdn_value_heads, Sizes::value}));  // its shape alone matters
  quire_gdn_prefill_args args{};
  args.struct_size = sizeof args;
  args.q = &q_view.view;
  args.k = &k_view.view;
  args.v = &v_view.view;
  args.g = &g_view.view;
  args.beta = &beta_view.view;
  args.cu_seqlens = &lens.view;
  args.initial_state = &states_view.view;
  args.state_indices = &none_view.view;  // E6: from zero
  args.output_state = &states_view.view;
  args.output_state_indices = &last_view.view;
  args.state_checkpoints = &states_view.view;
  args.checkpoint_cu_starts = &starts_view.view;
  args.output = &output.view;
  args.checkpoint_every_n_tokens = page_size;
  args.scale = 1 / std::sqrt(static_cast<double>(Sizes::key));
  args.use_qk_l2norm = 1;
  reference::GdnBounds bounds = reference::gdn_prefill_bounds(args, contract);
  // E7, E11: a boundary that is also the end is both, the same bits.
  bounds.state_checkpoints.merge(bounds.output_state);
  return bounds;
}

/// Compares numbers with their bounds, element by element.
class Judge {
 public:
  Judge(const quire_contract& contract, double& largest_error) : contract_(contract), factor_(reference::factor(contract)), largest_(largest_error) {}

  /// The first of `count` numbers that is not accepted, or -1.
  std::int64_t first_wrong(const float* got, const double* center, const double* deviation, std::int64_t count) {
    for (std::int64_t e = 0; e < count; ++e) {
      const double value = got[e], error = std::fabs(value - center[e]);
      // The roundings at the ends of what is accepted are found where the plain comparison doesn't say enough.
      if (!(error <= factor_ * deviation[e]) && !reference::accepts(value, center[e], deviation[e], QUIRE_F32, contract_)) return e;
      // The final rounding is everybody's: what is told is the rest.
      const double own = error - std::fabs(center[e]) * float32, allowed = factor_ * deviation[e];
      if (own > largest_ * allowed && allowed > 0) largest_ = own / allowed;
    }
    return -1;
  }
  std::string words(double got, double center, double deviation) const {
    return fmt::format("expected {:.9g}, got {:.9g}, allowed {:.2g}", center, got, reference::allowed(center, deviation, QUIRE_F32, contract_));
  }

 private:
  const quire_contract& contract_;
  double factor_;
  double& largest_;
};

}  // namespace

Contracts Contracts::of(const Backend& backend) {
  Contracts contracts{backend.contract(QUIRE_OP_ATTEND, DType::f32, DType::f32), backend.contract(QUIRE_OP_GDN_PREFILL, DType::f32, DType::f32)};
  for (const quire_op op : {QUIRE_OP_GDN_DECODE, QUIRE_OP_GDN_VERIFY}) {
    const quire_contract other = backend.contract(op, DType::f32, DType::f32);
    contracts.recurrence = at_least(contracts.recurrence, std::max(other.u_accumulate, other.u_product));
    contracts.recurrence.u_exp = std::max(contracts.recurrence.u_exp, other.u_exp);
    contracts.recurrence.u_store = std::max(contracts.recurrence.u_store, other.u_store);
  }
  contracts.recurrence = at_least(contracts.recurrence, float32);
  return contracts;
}

void verify(const Sequence& sequence, const Layers& layers, const PageCache& pages, const Activations& activations, std::int64_t window, const Contracts& contracts,
            Verified& verified) {
  const Request& request = *sequence.request;
  const Outputs& outputs = *sequence.outputs;
  const std::int64_t page_size = pages.page_size(), computed = request.tokens() - sequence.prefix;
  verified.requests += 1;
  verified.tokens += computed;
  // What is compared below is what there should be: outputs of each computed token in each layer, and a page for each page_size tokens.
  const std::int64_t wanted_pages = (request.tokens() + page_size - 1) / page_size;
  bool is_complete = static_cast<std::int64_t>(sequence.pages.size()) == wanted_pages && static_cast<std::int64_t>(outputs.steps.size()) == computed;
  for (int layer = 0; layer < layers.count() && is_complete; ++layer) {
    is_complete = static_cast<std::int64_t>(outputs.layers[static_cast<std::size_t>(layer)].size()) == computed * Layers::width(layer);
  }
  if (!is_complete) {
    const std::int64_t step = outputs.steps.empty() ? 0 : outputs.steps.back();
    verified.mismatches.push_back({step, request.number, {}, {}, {}, "output",
                                   fmt::format("step {}, request {}: outputs of {} tokens and {} pages were kept, or fewer in some layer; there should be {} and {}", step,
                                               request.number, outputs.steps.size(), sequence.pages.size(), computed, wanted_pages)});
    return;
  }
  for (int layer = 0; layer < layers.count(); ++layer) {
    const bool is_attention = layer == 0;
    Judge judge(is_attention ? contracts.attention : contracts.recurrence, verified.largest_error);
    const std::int64_t width = Layers::width(layer);
    const auto put = [&](std::int64_t position, std::string_view what, std::int64_t head, std::string_view element, const std::string& numbers) {
      const PageId page = sequence.pages[static_cast<std::size_t>(position / page_size)];
      const std::int64_t step = position < sequence.prefix ? outputs.steps.front() : outputs.steps[static_cast<std::size_t>(position - sequence.prefix)];
      verified.mismatches.push_back({step, request.number, position, page, Layers::name(layer), std::string(what),
                                     fmt::format("step {}, request {}, layer {}, page {}, token {}: {}, head {}, {}: {}", step, request.number, Layers::name(layer), page,
                                                 position, what, head, element, numbers)});
    };
    const auto compare_outputs = [&](const Bounds& bounds) {
      const std::vector<float>& got = outputs.layers[static_cast<std::size_t>(layer)];
      const std::int64_t first = sequence.prefix * width;
      const std::int64_t e = judge.first_wrong(got.data(), bounds.center.data() + first, bounds.deviation.data() + first, computed * width);
      if (e < 0) return;
      const std::int64_t value_width = is_attention ? Sizes::head_value : Sizes::value;
      const auto at = static_cast<std::size_t>(first + e);
      put(sequence.prefix + e / width, "output", e % width / value_width, fmt::format("element {}", e % value_width),
          judge.words(got[static_cast<std::size_t>(e)], bounds.center[at], bounds.deviation[at]));
    };
    if (is_attention) {
      compare_outputs(attention_bounds(request, activations, window, contracts.attention));
      continue;
    }
    const reference::GdnBounds bounds = gdn_bounds(request, activations, layer, page_size, contracts.recurrence);
    compare_outputs(bounds.output);
    // A prefix's own page is compared too: its state is what this request began with.
    for (std::int64_t j = std::max<std::int64_t>(sequence.prefix / page_size - 1, 0); j < static_cast<std::int64_t>(sequence.pages.size()); ++j) {
      const Bounds& state = bounds.state_checkpoints.at(j);
      const float* got = layers.states(layer).data<float>() + pages.page(sequence.pages[static_cast<std::size_t>(j)]).state * Sizes::state;
      verified.states += 1;
      const std::int64_t e = judge.first_wrong(got, state.center.data(), state.deviation.data(), Sizes::state);
      if (e < 0) continue;
      const auto at = static_cast<std::size_t>(e);
      put(std::min((j + 1) * page_size, request.tokens()) - 1, "state", e / (Sizes::value * Sizes::key),
          fmt::format("value {}, key {}", e / Sizes::key % Sizes::value, e % Sizes::key), judge.words(got[e], state.center[at], state.deviation[at]));
      break;
    }
  }
}

std::int64_t verify_bytes(std::int64_t tokens, std::int64_t page_size) {
  const std::int64_t inputs = 192 * 4, bounds = 2 * 8 * (Sizes::gdn_output + Sizes::query_heads), repeats = 2 * 48;
  return tokens * (inputs + bounds + repeats) + (tokens / page_size + 1) * Sizes::state * (2 * 8 + 4);
}

std::int64_t outputs_bytes(std::int64_t tokens, std::int64_t layers) {
  return tokens * (4 * (Sizes::attention_output + layers * Sizes::gdn_output) + 8);
}

}  // namespace quire::replay
