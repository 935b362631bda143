// What one step computes: a piece of each of some requests, or a draft of each.
#pragma once

#include "activations.h"
#include "draft.h"
#include "sequence.h"
#include "tables.h"

#include <quire/index.h>

#include <cstdint>
#include <vector>

namespace quire::replay {

enum class StepKind { prefill, decode, draft };

/// One request's part of a step: `count` tokens from position `begin` on, or the nodes of a tree.
struct Lane {
  Sequence* sequence = nullptr;
  std::int64_t begin = 0, count = 0;
  std::vector<DraftNode> tree;
  std::vector<PageId> scratch;  ///< a page for each node: its state and its first slot are where the node is stored

  std::int64_t position(std::int64_t i) const { return tree.empty() ? begin + i : tree[static_cast<std::size_t>(i)].position; }
  Token token(std::int64_t i) const { return {sequence->request->source(position(i)), tree.empty() ? 0 : tree[static_cast<std::size_t>(i)].guess}; }
};

/// Lanes are padded on the left to the longest: token i of lane b stands in cell b * seq + seq - count + i.
struct Batch {
  StepKind kind = StepKind::decode;
  std::vector<Lane> lanes;
  std::int64_t seq = 0, tokens = 0;

  std::vector<std::int64_t> first;  ///< of each lane's tokens, where all tokens stand packed one after another

  void add(Lane lane);
  std::int64_t size() const { return static_cast<std::int64_t>(lanes.size()); }
  std::int64_t cell(std::int64_t b, std::int64_t i) const { return (b + 1) * seq - lanes[static_cast<std::size_t>(b)].count + i; }
  /// Calls body(lane, b, i) for each token, in order.
  template <typename Body>
  void for_each(const Body& body) const {
    for (std::int64_t b = 0; b < size(); ++b) {
      const Lane& lane = lanes[static_cast<std::size_t>(b)];
      for (std::int64_t i = 0; i < lane.count; ++i) body(lane, b, i);
    }
  }
};

/// The step's one index (A1, F1): every layer gets this one, or a view of it (A7, A9).
Index index_of(const Batch& batch, const Tables& tables);

/// A9: `index` as a draft. Node i is stored at the first slot of its scratch page and sees its ancestors.
Index drafted(const Index& index, const Batch& batch, const PageCache& pages);

/// F2: the row of the state that each lane's first token goes on from, and the row that each node's state goes to.
struct DraftStates {
  Tensor state_indices;  ///< [B]
  Tensor state_slots;    ///< [B, S], -1 for padding
};
DraftStates draft_states(const Batch& batch, const Tables& tables, const PageCache& pages);

}  // namespace quire::replay
