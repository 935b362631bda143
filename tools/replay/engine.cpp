// The engine's steps: what is computed, kept, shared and retired. Scheduling stands in schedule.cpp.
#include "engine.h"

#include "choices.h"
#include "record.h"
#include "stopwatch.h"

#include <quire/check.h>
#include <quire/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace quire::replay {

namespace {

// The engine's clock, which decides when requests have come: a step takes so long, and each of its tokens.
constexpr double step_ms = 5, token_ms = 0.02;

// Shared pages that are compared at each step whether it touched them or not.
constexpr std::int64_t rotating_sample = 2;

}  // namespace

Engine::Engine(const Options& options, const Trace& trace, const Backend& backend)
    : options_(options),
      backend_(backend),
      on_(on_host_tensors(backend)),
      most_nodes_(options.draft > 0 ? most_draft_nodes : 0),
      pages_(options.pages, options.page_size),
      tables_(std::min<std::int64_t>(options.lanes, static_cast<std::int64_t>(trace.requests.size())), trace.longest(), options.page_size),
      layers_(options, options.pages, options.page_size, on_),
      activations_(options.seed),
      guard_(pages_, layers_),
      contracts_(Contracts::of(backend)),
      first_request_(trace.requests.front().number) {
  for (const Request& request : trace.requests) waiting_.push_back(&request);
  for (std::int64_t row = tables_.rows(); row-- > 0;) free_rows_.push_back(row);
  bytes_ = most_bytes_ = Layers::bytes(options.pages, options.page_size, options.layers) + tables_.bytes() + 8 * options.pages * options.page_size;
  if (!options.save.empty()) recorder_ = std::make_unique<StepRecorder>(options, layers_, pages_, tables_);
}

Engine::~Engine() = default;

void Engine::round() {
  std::vector<Batch> batches;
  {
    const Stopwatch scheduling(seconds_.schedule);
    admit();
    batches = plan();
  }
  if (batches.empty()) {
    // Every page can be had when nothing runs, and `settle` found them enough for any request: somebody did not give pages or rows back.
    is_broken_ = true;
    verified_.mismatches.push_back({counts_.steps, {}, {}, {}, {}, "stuck",
                                    fmt::format("step {}: request {} can't be admitted though none runs: {} of {} pages and {} of {} rows can be had", counts_.steps,
                                                waiting_.front()->number, pages_.available(), pages_.size(), free_rows_.size(), tables_.rows())});
    return;
  }
  for (Batch& batch : batches) {
    try {
      run(batch);
    } catch (const Error& error) {
      if (options_.fault == Fault::none) throw;
      is_broken_ = true;
      verified_.mismatches.push_back({counts_.steps, {}, {}, {}, {}, "refused", fmt::format("step {}: a call was refused: {}", counts_.steps, error.what())});
      return;
    }
    clock_ms_ += step_ms + token_ms * static_cast<double>(batch.tokens);
    counts_.steps += 1;
  }
  for (const PageId id : guard_.sample(rotating_sample)) compare(id, {});
  retire();
}

void Engine::run(Batch& batch) {
  const bool is_draft = batch.kind == StepKind::draft;
  allocate(batch);
  std::optional<Index> index;
  std::optional<DraftStates> rows;
  {
    const Stopwatch building(seconds_.index);
    index = index_of(batch, tables_);
    if (is_draft) {
      index = drafted(*index, batch, pages_);
      rows = draft_states(batch, tables_, pages_);
    }
  }
  check_obligations(*index, batch);
  if (recorder_) recorder_->record(counts_.steps, batch, activations_);
  const auto done = [&](int layer, const LayerOutput& output) { keep_outputs(batch, layer, output); };
  if (is_draft) {
    layers_.run_draft(*index, *rows, batch, activations_, done);
  } else {
    layers_.run(*index, batch, activations_, done);
  }
  keep(batch);
  guard_touched(batch);

  counts_.prefills += batch.kind == StepKind::prefill ? 1 : 0;
  counts_.decodes += batch.kind == StepKind::decode ? 1 : 0;
  counts_.drafts += is_draft ? 1 : 0;
  counts_.lanes += batch.size();
  counts_.step_tokens += batch.tokens;
  counts_.most_lanes = std::max(counts_.most_lanes, batch.size());
  counts_.most_tokens = std::max(counts_.most_tokens, batch.tokens);
}

// Pages for every position that the step stores, and scratch pages for a draft's nodes.
void Engine::allocate(Batch& batch) {
  for (Lane& lane : batch.lanes) {
    Sequence& sequence = *lane.sequence;
    std::int64_t last = lane.position(0);
    for (std::int64_t i = 0; i < lane.count; ++i) last = std::max(last, lane.position(i));
    while (static_cast<std::int64_t>(sequence.pages.size()) * page_size() <= last) {
      const PageId id = take_page();
      const auto j = static_cast<std::int64_t>(sequence.pages.size());
      if (options_.fault == Fault::share && j > 0 && j * page_size() == sequence.prefix) {
        pages_.page(id).slots = pages_.page(sequence.pages.back()).slots;
        planted_ += 1;
      }
      sequence.pages.push_back(id);
      tables_.name_page(sequence.row, j, pages_.page(id));
    }
    for (std::size_t n = 0; n < lane.tree.size(); ++n) lane.scratch.push_back(take_page());
  }
}

PageId Engine::take_page() {
  if (pages_.available() == 0) throw Error(ErrorCode::internal, "", "no page is left");
  const PageId id = pages_.take();
  if (pages_.last_was_evicted()) guard_.forget(id);
  if (pages_.last_was_fresh()) layers_.poison(pages_.page(id));
  constexpr std::int64_t between_evictions = 16;
  if (options_.fault == Fault::evict && ++takes_ % between_evictions == 0) {
    if (const PageId held = pages_.latest_held(); held >= 0) {
      pages_.page(id).slots = pages_.page(held).slots;  // given to another though a request still reads them
      planted_ += 1;
    }
  }
  return id;
}

// Outputs of tokens that are kept: into the digest, and beside the request where it will be verified.
void Engine::keep_outputs(const Batch& batch, int layer, const LayerOutput& output) {
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const Lane& lane = batch.lanes[static_cast<std::size_t>(b)];
    const auto keep_row = [&](std::int64_t i) {
      const float* row = output.row(b, i);
      outputs_hash_.add(row, static_cast<std::size_t>(output.width) * sizeof(float));
      if (lane.sequence->outputs == nullptr) return;
      std::vector<float>& kept = lane.sequence->outputs->layers[static_cast<std::size_t>(layer)];
      kept.insert(kept.end(), row, row + output.width);
      if (layer == 0) lane.sequence->outputs->steps.push_back(counts_.steps);
    };
    if (lane.tree.empty()) {
      for (std::int64_t i = 0; i < lane.count; ++i) keep_row(i);
    } else {
      for (const std::int64_t i : accepted(lane.tree)) keep_row(i);
    }
  }
}

void Engine::keep(Batch& batch) {
  for (Lane& lane : batch.lanes) {
    if (lane.tree.empty()) {
      lane.sequence->computed += lane.count;
      counts_.computed_tokens += lane.count;
    } else {
      keep_draft(lane);
    }
    share_whole_pages(*lane.sequence);
  }
}

// F2: keeping a path is naming where its tokens were stored. The request's pages and the scratch pages exchange slots and states, the
// tables follow, and the scratch pages go back with what was rejected.
void Engine::keep_draft(Lane& lane) {
  Sequence& sequence = *lane.sequence;
  const std::vector<std::int64_t> path = accepted(lane.tree);
  for (const std::int64_t n : path) {
    const std::int64_t position = lane.position(n), j = position / page_size();
    Page &own = pages_.page(sequence.pages[static_cast<std::size_t>(j)]), &scratch = pages_.page(lane.scratch[static_cast<std::size_t>(n)]);
    std::int64_t& slot = own.slots[static_cast<std::size_t>(position % page_size())];
    std::swap(slot, scratch.slots[0]);
    tables_.name_slot(sequence.row, position, slot);
    if (n != path.back() && (position + 1) % page_size() != 0) continue;
    // The state of a page is that of its last token so far.
    const bool wrongly = options_.fault == Fault::reject && n == path.back() && n + 1 != lane.count;
    planted_ += wrongly ? 1 : 0;
    std::swap(own.state, wrongly ? pages_.page(lane.scratch.back()).state : scratch.state);
    tables_.name_state(sequence.row, j, own.state);
  }
  pages_.release(lane.scratch);
  const auto kept = static_cast<std::int64_t>(path.size());
  sequence.computed += kept;
  counts_.computed_tokens += kept;
  counts_.drafted_tokens += lane.count;
  counts_.accepted_tokens += kept;
  for (std::int64_t n = 1; n < lane.count; ++n) {
    for (std::int64_t before = 1; before < n; ++before) {
      if (lane.tree[static_cast<std::size_t>(before)].parent != lane.tree[static_cast<std::size_t>(n)].parent) continue;
      counts_.branches += 1;
      break;
    }
  }
}

// A page that is full of prompt tokens can serve another request whose prompt begins alike.
void Engine::share_whole_pages(Sequence& sequence) {
  const Request& request = *sequence.request;
  while ((sequence.whole + 1) * page_size() <= std::min(sequence.computed, request.prompt)) {
    const PageId id = sequence.pages[static_cast<std::size_t>(sequence.whole)];
    const PrefixKey place = key(request, sequence.whole, sequence.chain);
    if (pages_.share(id, place)) {
      const Stopwatch guarding(seconds_.guard);
      guard_.watch(id);
      sequence.chain = pages_.number(id);
    } else {
      sequence.chain = pages_.number(pages_.find(place));  // another request computed the same page meanwhile: both are kept
    }
    sequence.whole += 1;
  }
}

void Engine::retire() {
  for (auto sequence = running_.begin(); sequence != running_.end();) {
    if (!sequence->is_done()) {
      ++sequence;
      continue;
    }
    if (sequence->outputs != nullptr) {
      const Stopwatch verifying(seconds_.verify);
      verify(*sequence, layers_, pages_, activations_, options_.window, contracts_, verified_);
      bytes_ -= outputs_bytes(sequence->request->tokens(), options_.layers) + verify_bytes(sequence->request->tokens(), page_size());
    }
    pages_.release(sequence->pages);
    tables_.clear(sequence->row);
    free_rows_.push_back(sequence->row);
    counts_.requests += 1;
    sequence = running_.erase(sequence);
  }
}

// F3, in the engine's words: a finding's lane or row is a request, and its column a page of it. Of each kind and request the first is told.
void Engine::check_obligations(const Index& index, const Batch& batch) {
  if (!options_.check) return;
  counts_.checks += 1;
  std::set<std::pair<std::string, std::int64_t>> told;
  for (const Finding& finding : check(index, options_.pages * page_size())) {
    counts_.findings += 1;
    const Sequence* sequence = finding.lane ? batch.lanes[static_cast<std::size_t>(*finding.lane)].sequence : nullptr;
    for (const Sequence& running : running_) {
      if (sequence == nullptr && finding.row == running.row) sequence = &running;
    }
    std::optional<std::int64_t> request, position = finding.column;
    std::optional<PageId> page;
    if (sequence != nullptr) {
      request = sequence->request->number;
      const auto j = static_cast<std::size_t>(position.value_or(-1) / page_size());
      if (position && j < sequence->pages.size()) page = sequence->pages[j];
    }
    if (!told.emplace(finding.kind, request.value_or(-1)).second) continue;
    const auto part = [](std::string_view what, const std::optional<std::int64_t>& number) { return number ? fmt::format(", {} {}", what, *number) : std::string(); };
    verified_.mismatches.push_back({counts_.steps, request, position, page, "index", "check",
                                    fmt::format("step {}{}, layer index{}: check: {}: {}", counts_.steps, part("request", request), part("page", page), finding.kind,
                                                finding.message)});
  }
}

// A step touches the shared pages that its first tokens look back into. Those that it has just filled were hashed a moment ago.
void Engine::guard_touched(const Batch& batch) {
  const Stopwatch guarding(seconds_.guard);
  for (const Lane& lane : batch.lanes) {
    const std::int64_t begin = lane.position(0);
    for (std::int64_t j = std::max<std::int64_t>(begin - options_.window + 1, 0) / page_size(); j * page_size() < begin; ++j) {
      compare(lane.sequence->pages[static_cast<std::size_t>(j)], lane.sequence->request->number);
    }
  }
}

// Without a reader, a request that holds the page is named.
void Engine::compare(PageId id, std::optional<std::int64_t> request) {
  const std::optional<int> layer = guard_.changed_layer(id);
  if (!layer) return;
  for (const Sequence& running : running_) {
    if (!request && std::find(running.pages.begin(), running.pages.end(), id) != running.pages.end()) request = running.request->number;
  }
  const std::string name = Layers::name(*layer), reader = request ? fmt::format(", request {}", *request) : std::string();
  verified_.mismatches.push_back({counts_.steps, request, {}, id, name, "shared page",
                                  fmt::format("step {}{}, layer {}, page {}: a shared page has changed", counts_.steps, reader, name, id)});
}

void Engine::finish() {
  const Stopwatch guarding(seconds_.guard);
  for (const PageId id : guard_.all()) compare(id, {});
  if (is_done()) {
    const std::string wrong = pages_.imbalance();
    if (!wrong.empty()) verified_.mismatches.push_back({counts_.steps, {}, {}, {}, {}, "pages", fmt::format("step {}: {}", counts_.steps, wrong)});
  }
  std::stable_sort(verified_.mismatches.begin(), verified_.mismatches.end());
}

PhaseSeconds Engine::seconds() const {
  PhaseSeconds all = seconds_;
  all.activations = layers_.seconds().activations;
  all.attention = layers_.seconds().attention;
  all.recurrence = layers_.seconds().recurrence;
  return all;
}

std::uint64_t Engine::digest() const {
  BitHash all = outputs_hash_;
  for (const PageId id : pages_.shared_pages()) {
    all.add(&id, sizeof id);
    for (int layer = 0; layer < layers_.count(); ++layer) layers_.add_to(all, pages_.page(id), layer);
  }
  return all.value();
}

bool Engine::has_saved() const { return recorder_ && recorder_->has_steps(); }

void Engine::save() const {
  if (recorder_) recorder_->write();
}

}  // namespace quire::replay
