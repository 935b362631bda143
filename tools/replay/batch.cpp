// Indices of a step.
#include "batch.h"

#include <algorithm>

namespace quire::replay {

namespace {

Tensor filled(Shape shape, std::int64_t value) {
  Tensor tensor = Tensor::empty(DType::i64, std::move(shape), "--batch-tokens");
  std::fill_n(tensor.data<std::int64_t>(), tensor.elements(), value);
  return tensor;
}

}  // namespace

void Batch::add(Lane lane) {
  first.push_back(tokens);
  seq = std::max(seq, lane.count);
  tokens += lane.count;
  lanes.push_back(std::move(lane));
}

Index index_of(const Batch& batch, const Tables& tables) {
  Tensor pos = filled({batch.size(), batch.seq}, -1), row = filled({batch.size()}, -1);
  batch.for_each([&](const Lane& lane, std::int64_t b, std::int64_t i) { pos.data<std::int64_t>()[batch.cell(b, i)] = lane.position(i); });
  for (std::int64_t b = 0; b < batch.size(); ++b) row.data<std::int64_t>()[b] = batch.lanes[static_cast<std::size_t>(b)].sequence->row;
  return tables.index(std::move(pos), std::move(row));
}

Index drafted(const Index& index, const Batch& batch, const PageCache& pages) {
  Tensor slots = filled({batch.size(), batch.seq}, -1), sees = Tensor::zeros(DType::boolean, {batch.size(), batch.seq, batch.seq}, "--lanes");
  batch.for_each([&](const Lane& lane, std::int64_t b, std::int64_t i) {
    const std::int64_t cell = batch.cell(b, i);
    slots.data<std::int64_t>()[cell] = pages.page(lane.scratch[static_cast<std::size_t>(i)]).slots[0];
    for (std::int64_t j = 0; j <= i; ++j) {
      sees.data<std::uint8_t>()[cell * batch.seq + batch.seq - lane.count + j] = descends(lane.tree, i, j) ? 1 : 0;
    }
  });
  return index.draft(std::move(slots), std::move(sees));
}

DraftStates draft_states(const Batch& batch, const Tables& tables, const PageCache& pages) {
  DraftStates states{filled({batch.size()}, -1), filled({batch.size(), batch.seq}, -1)};
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const Lane& lane = batch.lanes[static_cast<std::size_t>(b)];
    const std::int64_t last = lane.position(0) - 1;  // a request that decodes has computed a token
    states.state_indices.data<std::int64_t>()[b] = tables.state(lane.sequence->row, last / pages.page_size());
  }
  batch.for_each([&](const Lane& lane, std::int64_t b, std::int64_t i) {
    states.state_slots.data<std::int64_t>()[batch.cell(b, i)] = pages.page(lane.scratch[static_cast<std::size_t>(i)]).state;
  });
  return states;
}

}  // namespace quire::replay
