// Computing a request once more, without cache, pages, batches or drafts, and comparing what the engine gave.
#pragma once

#include "layers.h"
#include "sequence.h"

#include <quire/registry.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire::replay {

/// Where something first went wrong. Fields that say nothing there are absent.
struct Mismatch {
  std::int64_t step = 0;
  std::optional<std::int64_t> request, position;
  std::optional<PageId> page;
  std::string layer;    ///< "attention", "gdn 0"
  std::string what;     ///< "output", "state", "shared page", "check", "refused", "stuck", "pages"
  std::string message;  ///< one line with all of it

  bool operator<(const Mismatch& other) const { return step < other.step; }
};

/// How far from the law a backend's float32 results may be: what its contracts say, and at least the roundings that a state meets when
/// it is stored between calls (E5), no more than those of a token recurrence in float32.
struct Contracts {
  quire_contract attention{}, recurrence{};
  static Contracts of(const Backend& backend);
};

/// What was compared.
struct Verified {
  std::int64_t requests = 0, tokens = 0, states = 0;
  double largest_error = 0;  ///< over what is allowed, both without the final rounding
  std::vector<Mismatch> mismatches;
};

/// Compares a request's kept outputs and the states that its pages hold, layer by layer, with an uncached computation's error bounds. Adds
/// at most one mismatch of outputs and one of states per layer: the first.
void verify(const Sequence& sequence, const Layers& layers, const PageCache& pages, const Activations& activations, std::int64_t window, const Contracts& contracts,
            Verified& verified);

/// Bytes that `verify` takes for a request, beside those of its kept outputs.
std::int64_t verify_bytes(std::int64_t tokens, std::int64_t page_size);
std::int64_t outputs_bytes(std::int64_t tokens, std::int64_t layers);

}  // namespace quire::replay
