// The engine's scheduling: who is admitted, and what each step computes of whom.
#include "choices.h"
#include "engine.h"
#include "record.h"

#include <algorithm>

namespace quire::replay {

namespace {

// A batch is padded to its longest lane; decoding lanes ride along with a prefill while all cells stay below so many times the budget.
constexpr std::int64_t most_padding = 4;

}  // namespace

// The blocks that a page's tokens come from. Equal blocks after equal pages are equal tokens, and so equal states.
PrefixKey Engine::key(const Request& request, std::int64_t j, std::uint64_t before) const {
  PrefixKey key{before, {}};
  for (std::int64_t p = j * page_size(); p < (j + 1) * page_size(); p = (p / request.block_size + 1) * request.block_size) {
    const TokenSource source = request.source(p);
    key.blocks.push_back(source.is_own ? -1 - source.stream : source.stream);
  }
  return key;
}

// The pages of the longest cached prefix. At least one token is left to compute: somebody must put out the next one.
std::int64_t Engine::cached_prefix(const Request& request, std::vector<PageId>& pages) const {
  std::uint64_t before = 0;
  while (static_cast<std::int64_t>(pages.size() + 1) * page_size() < request.prompt) {
    const PageId id = pages_.find(key(request, static_cast<std::int64_t>(pages.size()), before));
    if (id < 0) break;
    pages.push_back(id);
    before = pages_.number(id);
  }
  return static_cast<std::int64_t>(pages.size()) * page_size();
}

bool Engine::wants_verification(const Request& request) const {
  // Of any share the first request is one, so that a short run verifies something too; and so is one that is saved.
  return (options_.verify > 0 && request.number == first_request_) || chance(options_.seed, Choice::verify, request.number) < options_.verify ||
         options_.save_request == request.number;
}

// Pages that running requests may still take.
std::int64_t Engine::reserved() const {
  std::int64_t pages = 0;
  for (const Sequence& sequence : running_) {
    pages += (sequence.request->tokens() + page_size() - 1) / page_size() - static_cast<std::int64_t>(sequence.pages.size()) + most_nodes_;
  }
  return pages;
}

// First come, first served, while there are rows, pages and memory. A request is admitted when every page that it may need can be had: no
// running request is ever thrown out.
void Engine::admit() {
  if (running_.empty() && !waiting_.empty()) clock_ms_ = std::max(clock_ms_, static_cast<double>(waiting_.front()->arrival_ms));
  while (!waiting_.empty() && !free_rows_.empty() && static_cast<double>(waiting_.front()->arrival_ms) <= clock_ms_) {
    const Request& request = *waiting_.front();
    Sequence sequence;
    sequence.request = &request;
    sequence.prefix = sequence.computed = cached_prefix(request, sequence.pages);
    const auto shared = static_cast<std::int64_t>(sequence.pages.size());
    const std::int64_t idle = std::count_if(sequence.pages.begin(), sequence.pages.end(), [&](PageId id) { return pages_.page(id).holders == 0; });
    const std::int64_t wanted = (request.tokens() + page_size() - 1) / page_size() - shared + most_nodes_;
    if (pages_.available() - idle - reserved() < wanted) return;
    if (wants_verification(request)) {
      const std::int64_t bytes = outputs_bytes(request.tokens(), options_.layers) + verify_bytes(request.tokens(), page_size());
      if (bytes_ + bytes > options_.max_memory && !running_.empty()) return;
      bytes_ += bytes;
      most_bytes_ = std::max(most_bytes_, bytes_);
      sequence.outputs = std::make_unique<Outputs>();
      sequence.outputs->layers.resize(static_cast<std::size_t>(layers_.count()));
    }
    waiting_.pop_front();
    sequence.row = free_rows_.back();
    free_rows_.pop_back();
    sequence.whole = shared;
    sequence.chain = shared > 0 ? pages_.number(sequence.pages.back()) : 0;
    for (std::int64_t j = 0; j < shared; ++j) {
      const PageId id = sequence.pages[static_cast<std::size_t>(j)];
      pages_.hold(id);
      tables_.name_page(sequence.row, j, pages_.page(id));
    }
    counts_.prompt_tokens += request.prompt;
    counts_.output_tokens += request.output;
    counts_.cached_tokens += sequence.prefix;
    running_.push_back(std::move(sequence));
  }
}

// Decoding requests first, one token or one draft each; then prompts in order of admission, in uneven pieces.
std::vector<Batch> Engine::plan() {
  Batch drafts{StepKind::draft, {}, 0, 0, {}}, decodes{StepKind::decode, {}, 0, 0, {}}, prefills{StepKind::prefill, {}, 0, 0, {}};
  std::int64_t budget = options_.batch_tokens;
  for (Sequence& sequence : running_) {
    if (!sequence.is_decoding() || budget == 0) continue;
    Lane lane{&sequence, sequence.computed, 1, {}, {}};
    const Request& request = *sequence.request;
    if (sequence.left() > 1 && budget >= most_nodes_ && chance(options_.seed, Choice::drafts, request.number, sequence.computed) < options_.draft) {
      lane.tree = draft_tree(options_.seed, request.number, sequence.computed, request.tokens() - 1, most_nodes_);
      lane.count = static_cast<std::int64_t>(lane.tree.size());
    }
    budget -= lane.count;
    (lane.tree.empty() ? decodes : drafts).add(std::move(lane));
  }
  for (Sequence& sequence : running_) {
    if (sequence.is_decoding() || budget == 0) continue;
    std::int64_t count = std::min({sequence.left(), options_.piece, budget});
    // A prompt's pieces end anywhere: the laws find the page ends among them. Only a prompt's last piece ends where it must.
    if (count > 1 && count < sequence.left()) count -= chosen(options_.seed, Choice::piece, (count + 3) / 4, sequence.request->number, sequence.computed);
    budget -= count;
    prefills.add({&sequence, sequence.computed, count, {}, {}});
  }
  if (!prefills.lanes.empty() && (prefills.size() + decodes.size()) * prefills.seq <= most_padding * options_.batch_tokens) {
    for (Lane& lane : decodes.lanes) prefills.add(std::move(lane));
    decodes.lanes.clear();
  }
  std::vector<Batch> batches;
  for (Batch* batch : {&drafts, &decodes, &prefills}) {
    if (!batch->lanes.empty()) batches.push_back(std::move(*batch));
  }
  return batches;
}

}  // namespace quire::replay
