// An engine in miniature: continuous batching over paged caches with a shared prefix cache, drafts, eviction and reuse.
//
// One step (Engine::step) reads like this: admit requests while pages last; choose a piece of each running request under the token budget;
// for each kind of work build one index and hand it to every layer; keep what was accepted; offer whole pages to the cache; retire.
#pragma once

#include "activations.h"
#include "batch.h"
#include "bit_hash.h"
#include "layers.h"
#include "options.h"
#include "page_guard.h"
#include "pages.h"
#include "tables.h"
#include "verify.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <vector>

namespace quire::replay {

class StepRecorder;

struct Counts {
  std::int64_t requests = 0;                                ///< done
  std::int64_t prompt_tokens = 0, output_tokens = 0;        ///< of those admitted
  std::int64_t cached_tokens = 0;                           ///< that came from the prefix cache
  std::int64_t computed_tokens = 0;                         ///< whose states were kept
  std::int64_t steps = 0, prefills = 0, decodes = 0, drafts = 0;
  std::int64_t lanes = 0, most_lanes = 0, most_tokens = 0, step_tokens = 0;
  std::int64_t drafted_tokens = 0, accepted_tokens = 0, branches = 0;  ///< of drafts; branches: nodes beside another of one parent
  std::int64_t checks = 0, findings = 0;                    ///< F3
};

struct PhaseSeconds {
  double schedule = 0, index = 0, activations = 0, attention = 0, recurrence = 0, guard = 0, verify = 0;
};

class Engine {
 public:
  /// `settle` (replay.h) has passed the options.
  Engine(const Options& options, const Trace& trace, const Backend& backend);
  ~Engine();

  bool is_done() const { return waiting_.empty() && running_.empty(); }
  /// One round: a step for each kind of work that there is. Raises what the backend raises, but under a planted mistake.
  void round();
  /// Every shared page is compared a last time, and the books of the pages are audited when nothing is left.
  void finish();

  const Counts& counts() const { return counts_; }
  const PageCounts& page_counts() const { return pages_.counts(); }
  const PageGuard& guard() const { return guard_; }
  const Verified& verified() const { return verified_; }
  PhaseSeconds seconds() const;
  std::int64_t page_size() const { return pages_.page_size(); }
  /// A hash of every output that was kept and every state and slot of the shared pages.
  std::uint64_t digest() const;
  /// Bytes that the engine holds: pools, tables, outputs kept for verification; at most, so far.
  std::int64_t most_bytes() const { return most_bytes_; }
  /// Whether a planted mistake led to a call that the library refused: nothing can go on.
  bool is_broken() const { return is_broken_; }
  /// Places where --fault was planted.
  std::int64_t planted() const { return planted_ + layers_.planted(); }
  bool has_saved() const;
  /// Writes the step or request that was to be saved. Raises invalid_argument (`--save`).
  void save() const;

 private:
  // Scheduling.
  void admit();
  std::int64_t cached_prefix(const Request& request, std::vector<PageId>& pages) const;
  PrefixKey key(const Request& request, std::int64_t j, std::uint64_t before) const;
  bool wants_verification(const Request& request) const;
  std::vector<Batch> plan();
  // A step.
  void run(Batch& batch);
  void allocate(Batch& batch);
  PageId take_page();
  void keep_outputs(const Batch& batch, int layer, const LayerOutput& output);
  void keep(Batch& batch);
  void keep_draft(Lane& lane);
  void share_whole_pages(Sequence& sequence);
  void retire();
  // Watching.
  void check_obligations(const Index& index, const Batch& batch);
  void guard_touched(const Batch& batch);
  void compare(PageId id, std::optional<std::int64_t> request);
  std::int64_t reserved() const;

  const Options& options_;
  const Backend& backend_;
  On on_;
  std::int64_t most_nodes_;
  PageCache pages_;
  Tables tables_;
  Layers layers_;
  Activations activations_;
  PageGuard guard_;
  Contracts contracts_;
  std::deque<const Request*> waiting_;
  std::list<Sequence> running_;
  std::vector<std::int64_t> free_rows_;
  std::unique_ptr<StepRecorder> recorder_;
  std::int64_t first_request_ = 0;
  double clock_ms_ = 0;
  std::int64_t takes_ = 0, planted_ = 0;
  bool is_broken_ = false;
  Counts counts_;
  PhaseSeconds seconds_;
  Verified verified_;
  BitHash outputs_hash_;
  std::int64_t bytes_ = 0, most_bytes_ = 0;
};

}  // namespace quire::replay
