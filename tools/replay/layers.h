// The model's stack: pools and calls. Some gated-delta layers and one layer of windowed attention, all on one index.
#pragma once

#include "activations.h"
#include "batch.h"
#include "bit_hash.h"
#include "fault.h"
#include "options.h"

#include <quire/ops.h>
#include <quire/pages.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quire::replay {

/// A layer's results for a step's tokens: row(b, i) is a token's, of `width` numbers.
struct LayerOutput {
  Tensor tensor;
  std::int64_t width = 0;
  std::function<std::int64_t(std::int64_t b, std::int64_t i)> place;
  const float* row(std::int64_t b, std::int64_t i) const { return tensor.data<float>() + place(b, i) * width; }
};

class Layers {
 public:
  Layers(const Options& options, std::int64_t pages, std::int64_t page_size, const On& on);

  /// Layer 0 is the attention, the gated-delta layers follow.
  int count() const { return 1 + static_cast<int>(states_.size()); }
  static std::string name(int layer) { return layer == 0 ? "attention" : "gdn " + std::to_string(layer - 1); }
  static std::int64_t width(int layer) { return layer == 0 ? Sizes::attention_output : Sizes::gdn_output; }
  /// Bytes of the pools for so many pages.
  static std::int64_t bytes(std::int64_t pages, std::int64_t page_size, std::int64_t layers);

  const Tensor& k_pool() const { return k_pool_; }
  const Tensor& v_pool() const { return v_pool_; }
  /// [pages, H, V, K] of a gated-delta layer, counted as in `name`.
  const Tensor& states(int layer) const { return states_[static_cast<std::size_t>(layer) - 1]; }

  /// Adds a layer's part of a page: its keys and values slot by slot, or its state.
  void add_to(BitHash& hash, const Page& page, int layer) const;
  /// A page that was never written holds NaN, so that reading it shows.
  void poison(const Page& page);

  /// Prefill and decode. `done` gets each layer's output, in order.
  void run(const Index& index, const Batch& batch, const Activations& activations, const std::function<void(int, const LayerOutput&)>& done);
  /// A draft of the same index, with where its states go.
  void run_draft(const Index& index, const DraftStates& rows, const Batch& batch, const Activations& activations,
                 const std::function<void(int, const LayerOutput&)>& done);

  /// Places where a mistake of this layer's calls was planted.
  std::int64_t planted() const { return planted_; }

  /// Seconds in calls: attention, the gated delta rule; and in making what they are fed.
  struct Seconds {
    double attention = 0, recurrence = 0, activations = 0;
  };
  const Seconds& seconds() const { return seconds_; }

 private:
  struct Buffers {
    std::vector<float> q, k, v, g, beta;
  };
  void attend(const Index& index, const Batch& batch, const Activations& activations, const std::function<void(int, const LayerOutput&)>& done);
  /// q, k, v, g, beta of a gated-delta layer: [lead..., heads, width], the tokens packed or in their cells.
  GdnInputs gdn_inputs(int layer, const Shape& lead, bool packed, const Batch& batch, const Activations& activations);
  void plant(GdnPrefillSlots& slots, const PageTable& table);

  std::int64_t page_size_, window_;
  Fault fault_;
  std::int64_t planted_ = 0;
  On on_;
  Tensor k_pool_, v_pool_;
  std::vector<Tensor> states_;
  Buffers buffers_;
  Seconds seconds_;
};

}  // namespace quire::replay
