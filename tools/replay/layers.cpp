// The stack's calls on one index.
#include "layers.h"

#include "parallel.h"
#include "stopwatch.h"

#include <algorithm>
#include <limits>

namespace quire::replay {

namespace {

using reference::parallel_for;

/// Memory that is kept from step to step; what it held before is left in it.
Tensor lent(std::vector<float>& buffer, Shape shape) {
  const auto elements = static_cast<std::size_t>(count_elements(shape, "--batch-tokens"));
  if (buffer.size() < elements) buffer.resize(elements);
  return Tensor::borrow(buffer.data(), DType::f32, std::move(shape));
}

Shape joined(Shape lead, std::int64_t heads, std::int64_t width = 0) {
  lead.push_back(heads);
  if (width > 0) lead.push_back(width);
  return lead;
}

/// Calls body(lane, b, i, packed place) for a step's tokens on several threads.
template <typename Body>
void for_tokens(const Batch& batch, const Body& body) {
  constexpr std::int64_t together = 32;
  const std::int64_t parts = (batch.tokens + together - 1) / together;
  parallel_for(parts, static_cast<double>(batch.tokens) * 3000, [&](std::int64_t part) {
    const std::int64_t begin = part * together, end = std::min(begin + together, batch.tokens);
    std::int64_t b = std::upper_bound(batch.first.begin(), batch.first.end(), begin) - batch.first.begin() - 1;
    for (std::int64_t n = begin; n < end; ++n) {
      const auto first = [&] { return batch.first[static_cast<std::size_t>(b)]; };
      while (n >= first() + batch.lanes[static_cast<std::size_t>(b)].count) ++b;
      body(batch.lanes[static_cast<std::size_t>(b)], b, n - first(), n);
    }
  });
}

LayerOutput output_of(Tensor tensor, int layer, const Batch& batch, bool packed) {
  return {std::move(tensor), Layers::width(layer), [&batch, packed](std::int64_t b, std::int64_t i) {
            return packed ? batch.first[static_cast<std::size_t>(b)] + i : batch.cell(b, i);
          }};
}

}  // namespace

Layers::Layers(const Options& options, std::int64_t pages, std::int64_t page_size, const On& on)
    : page_size_(page_size), window_(options.window), fault_(options.fault), on_(on) {
  k_pool_ = Tensor::empty(DType::f32, {pages * page_size, Sizes::kv_heads, Sizes::head}, "--pages");
  v_pool_ = Tensor::empty(DType::f32, {pages * page_size, Sizes::kv_heads, Sizes::head_value}, "--pages");
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    states_.push_back(Tensor::empty(DType::f32, {pages, Sizes::gdn_value_heads, Sizes::value, Sizes::key}, "--pages"));
  }
}

std::int64_t Layers::bytes(std::int64_t pages, std::int64_t page_size, std::int64_t layers) {
  const std::int64_t slot = Sizes::kv_heads * (Sizes::head + Sizes::head_value);
  return count_elements(Shape{pages, page_size * slot + layers * Sizes::state, 4}, "--pages");
}

void Layers::add_to(BitHash& hash, const Page& page, int layer) const {
  if (layer > 0) {
    hash.add(states(layer).data<float>() + page.state * Sizes::state, Sizes::state * sizeof(float));
    return;
  }
  for (const std::int64_t slot : page.slots) {
    hash.add(k_pool_.data<float>() + slot * Sizes::head, Sizes::head * sizeof(float));
    hash.add(v_pool_.data<float>() + slot * Sizes::head_value, Sizes::head_value * sizeof(float));
  }
}

void Layers::poison(const Page& page) {
  constexpr float poison = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t slot : page.slots) {
    std::fill_n(k_pool_.data<float>() + slot * Sizes::head, Sizes::head, poison);
    std::fill_n(v_pool_.data<float>() + slot * Sizes::head_value, Sizes::head_value, poison);
  }
  for (const Tensor& states : states_) std::fill_n(states.data<float>() + page.state * Sizes::state, Sizes::state, poison);
}

void Layers::attend(const Index& index, const Batch& batch, const Activations& activations, const std::function<void(int, const LayerOutput&)>& done) {
  Stopwatch making(seconds_.activations);
  const Shape lead = {batch.size(), batch.seq};
  const Tensor q = lent(buffers_.q, joined(lead, Sizes::query_heads, Sizes::head)), k = lent(buffers_.k, joined(lead, Sizes::kv_heads, Sizes::head)),
               v = lent(buffers_.v, joined(lead, Sizes::kv_heads, Sizes::head_value));
  for_tokens(batch, [&](const Lane& lane, std::int64_t b, std::int64_t i, std::int64_t) {
    const std::int64_t cell = batch.cell(b, i);
    activations.attention(lane.token(i), q.data<float>() + cell * Sizes::query_heads * Sizes::head, k.data<float>() + cell * Sizes::head,
                          v.data<float>() + cell * Sizes::head_value);
  });
  making.stop();
  planted_ += fault_ == Fault::window ? 1 : 0;
  Stopwatch calling(seconds_.attention);
  const Attended attended = quire::attend(index.window(window_ + (fault_ == Fault::window ? 1 : 0)), q, k, v, Pool::in_place(k_pool_), Pool::in_place(v_pool_), {}, on_);
  calling.stop();
  done(0, output_of(attended.out, 0, batch, false));
}

GdnInputs Layers::gdn_inputs(int layer, const Shape& lead, bool packed, const Batch& batch, const Activations& activations) {
  const Stopwatch making(seconds_.activations);
  GdnInputs inputs;
  inputs.q = lent(buffers_.q, joined(lead, Sizes::gdn_query_heads, Sizes::key));
  inputs.k = lent(buffers_.k, joined(lead, Sizes::gdn_query_heads, Sizes::key));
  inputs.v = lent(buffers_.v, joined(lead, Sizes::gdn_value_heads, Sizes::value));
  inputs.g = lent(buffers_.g, joined(lead, Sizes::gdn_value_heads));
  inputs.beta = lent(buffers_.beta, joined(lead, Sizes::gdn_value_heads));
  inputs.use_qk_l2norm = true;
  for_tokens(batch, [&](const Lane& lane, std::int64_t b, std::int64_t i, std::int64_t n) {
    const std::int64_t at = packed ? n : batch.cell(b, i), heads = Sizes::gdn_value_heads;
    activations.gdn(lane.token(i), layer - 1, inputs.q.data<float>() + at * Sizes::key, inputs.k.data<float>() + at * Sizes::key,
                    inputs.v.data<float>() + at * Sizes::gdn_output, inputs.g.data<float>() + at * heads, inputs.beta.data<float>() + at * heads);
  });
  return inputs;
}

void Layers::run(const Index& index, const Batch& batch, const Activations& activations, const std::function<void(int, const LayerOutput&)>& done) {
  attend(index, batch, activations, done);
  // F1: the same index's block table names the states' pages. The rows that a call reads and stores are found once and serve every layer.
  const PageTable table = PageTable::from(index, page_size_);
  if (batch.kind == StepKind::decode) {
    const GdnDecodeSlots slots = gdn_decode_slots(table.sequences(), k_pool_.size(0) / page_size_, on_);
    for (int layer = 1; layer < count(); ++layer) {
      GdnDecode call;
      call.inputs = gdn_inputs(layer, {batch.size(), 1}, true, batch, activations);
      call.state_pool = Pool::in_place(states(layer));
      Stopwatch calling(seconds_.recurrence);
      const GdnStates decoded = gdn_decode_paged(std::move(call), table.sequences(), &slots, on_);
      calling.stop();
      done(layer, output_of(decoded.output, layer, batch, true));
    }
    return;
  }
  GdnPrefillSlots slots = gdn_prefill_slots(table.cu_seqlens, table.sequences(), k_pool_.size(0) / page_size_, on_);
  plant(slots, table);
  for (int layer = 1; layer < count(); ++layer) {
    const GdnInputs inputs = gdn_inputs(layer, {batch.tokens}, true, batch, activations);
    Stopwatch calling(seconds_.recurrence);
    const GdnStates computed = gdn_prefill_paged(inputs, table.cu_seqlens, Pool::in_place(states(layer)), table.sequences(), &slots, on_);
    calling.stop();
    done(layer, output_of(computed.output, layer, batch, true));
  }
}

void Layers::run_draft(const Index& index, const DraftStates& rows, const Batch& batch, const Activations& activations,
                       const std::function<void(int, const LayerOutput&)>& done) {
  attend(index, batch, activations, done);
  for (int layer = 1; layer < count(); ++layer) {
    const GdnInputs inputs = gdn_inputs(layer, {batch.size(), batch.seq}, false, batch, activations);
    Stopwatch calling(seconds_.recurrence);
    const GdnStates verified = gdn_verify(index, inputs, Pool::in_place(states(layer)), rows.state_indices, rows.state_slots, on_);
    calling.stop();
    done(layer, output_of(verified.output, layer, batch, false));
  }
}

// The mistakes that lie in a prefill's rows.
void Layers::plant(GdnPrefillSlots& slots, const PageTable& table) {
  const auto at = [](const Tensor& tensor, std::int64_t i) -> std::int32_t& { return tensor.data<std::int32_t>()[i]; };
  for (std::int64_t i = 0; i < slots.state_indices.size(0); ++i) {
    if (fault_ == Fault::stale && at(slots.state_indices, i) < 0) {
      at(slots.state_indices, i) = at(table.page_indices, at(table.page_indptr, i));
      planted_ += 1;
    }
    if (fault_ == Fault::boundary) {
      const std::int64_t prefix = at(slots.prefix_lens, i), total = prefix + at(table.cu_seqlens, i + 1) - at(table.cu_seqlens, i);
      // One token early, where that leaves as many boundaries.
      if (prefix / page_size_ == (prefix + 1) / page_size_ && total / page_size_ == (total + 1) / page_size_) {
        at(slots.prefix_lens, i) += 1;
        planted_ += 1;
      }
    }
  }
}

}  // namespace quire::replay
