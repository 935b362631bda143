// Tabled: slots of positions, lanes of a call.
#include "tabled.h"

#include <algorithm>
#include <utility>

namespace quire::story {

std::vector<Logits> Layout::evaluate(const Index& index, std::span<const Token> tokens,
                                     std::span<const std::int64_t> places) {
  Index planted = index;
  if (index.is_tabled()) {
    planted = plant(setup_.fault, setup_.fault_from, index);
    const std::vector<Finding> findings = check(planted, caches_.keys.front().size(0));
    if (!findings.empty() && counts_.findings == 0)
      counts_.first_finding = findings.front().message;
    counts_.findings += static_cast<std::int64_t>(findings.size());
  }
  ++counts_.calls;
  counts_.lanes = std::max(counts_.lanes, index.batch());
  return setup_.model->evaluate(planted, tokens, caches_, places, setup_.on);
}

Tabled::Tabled(const Setup& setup, Slots slots)
    : Layout(setup), slots_(std::move(slots)), sequences_(1) {
  caches_ = Caches(setup.model->size(), slots_.count());
  sequences_[0].table.assign(static_cast<std::size_t>(setup.context), -1);
}

Counts Tabled::counts() const {
  Counts counts = counts_;
  counts.slots_used = slots_.used().most;
  counts.slots_shared = slots_.shared().most;
  counts.pages_used = slots_.pages_used().most;
  counts.pages_shared = slots_.pages_shared().most;
  return counts;
}

void Tabled::allocate(std::size_t row, std::int64_t position) {
  std::int64_t& slot = sequences_[row].table[static_cast<std::size_t>(position)];
  if (slot < 0) slot = slots_.take();
}

void Tabled::release(std::size_t row, std::int64_t position) {
  slots_.release(std::exchange(sequences_[row].table[static_cast<std::size_t>(position)], -1));
}

void Tabled::fork(std::size_t row) {
  sequences_.push_back(Sequence(sequences_[row]));
  for (const std::int64_t slot : sequences_.back().table) {
    if (slot >= 0) slots_.share(slot);
  }
  ++counts_.forks;
}

Lane Tabled::append(std::size_t row, std::span<const Token> tokens) {
  const std::int64_t begin = length(row);
  sequences_[row].tokens.insert(sequences_[row].tokens.end(), tokens.begin(), tokens.end());
  for (std::int64_t position = begin; position < length(row); ++position) allocate(row, position);
  return lane(row, begin, length(row));
}

Lane Tabled::lane(std::size_t row, std::int64_t begin, std::int64_t end) const {
  Lane lane{static_cast<std::int64_t>(row), {}, {}};
  for (std::int64_t position = begin; position < end; ++position) {
    lane.positions.push_back(position);
    lane.tokens.push_back(sequences_[row].tokens[static_cast<std::size_t>(position)]);
  }
  return lane;
}

namespace {

std::int64_t longest(std::span<const Lane> lanes) {
  std::size_t seq = 0;
  for (const Lane& lane : lanes) seq = std::max(seq, lane.tokens.size());
  return static_cast<std::int64_t>(seq);
}

}  // namespace

Index Tabled::index_of(std::span<const Lane> lanes) const {
  const auto batch = static_cast<std::int64_t>(lanes.size()),
             rows = static_cast<std::int64_t>(sequences_.size());
  const std::int64_t seq = longest(lanes);
  Tensor pos = Tensor::empty(DType::i64, {batch, seq}), row = Tensor::empty(DType::i64, {batch});
  Tensor table = Tensor::empty(DType::i64, {rows, setup_.context});
  std::fill_n(pos.data<std::int64_t>(), pos.elements(), -1);
  for (std::int64_t b = 0; b < batch; ++b) {
    const Lane& lane = lanes[static_cast<std::size_t>(b)];
    std::copy_backward(lane.positions.begin(), lane.positions.end(),
                       pos.data<std::int64_t>() + (b + 1) * seq);
    row.data<std::int64_t>()[b] = lane.row;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(sequences_[static_cast<std::size_t>(r)].table.begin(), setup_.context,
                table.data<std::int64_t>() + r * setup_.context);
  }
  return Index::make(std::move(pos), std::move(table), std::move(row));
}

std::vector<Logits> Tabled::call(std::span<const Lane> lanes) {
  const std::int64_t seq = longest(lanes);
  Tokens tokens(static_cast<std::size_t>(seq) * lanes.size());
  std::vector<std::int64_t> places;
  for (std::size_t b = 0; b < lanes.size(); ++b) {
    const auto end = static_cast<std::ptrdiff_t>(b + 1) * seq;
    std::copy_backward(lanes[b].tokens.begin(), lanes[b].tokens.end(), tokens.begin() + end);
    places.push_back(end - 1);
  }
  return evaluate(adapt(index_of(lanes)), tokens, places);
}

}  // namespace quire::story
