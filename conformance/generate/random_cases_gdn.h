// What the random cases of the gated delta rule share: heads, tokens, rows of pools, pages.
#pragma once

#include <string>
#include <vector>

#include "random_cases_parts.h"

namespace quire_tests {

struct Heads {
  std::int64_t query = 1;
  std::int64_t key = 1;
  std::int64_t value = 1;
  std::int64_t all = 1;
  std::int64_t k = 1;  // K
  std::int64_t v = 1;  // V
  Ints state_shape(std::int64_t rows) const { return {rows, all, v, k}; }
};

/// Features of every op of the rule; drawn with `Random::pick`.
struct RuleFeatures {
  std::string dtype;
  std::string state_dtype;
  Style style = Style::exact;
  std::int64_t heads = 0;  // equal, grouped queries or grouped values
  std::int64_t gates = 0;  // none, g, beta, both, raw (decode only)
  std::int64_t l2norm = 0;
  std::int64_t scale = 0;
};

RuleFeatures pick_rule_features(Random& random, bool may_be_raw);

/// Heads, K and V; `small` for long sequences.
Heads draw_heads(Random& random, const RuleFeatures& features, bool small);

/// Adds q, k, v, g, beta (or the raw gates), scale and use_qk_l2norm for tokens of shape `lead`.
/// `tame` keeps long recurrences from growing.
void add_tokens(Random& random, const RuleFeatures& features, const Heads& heads, const Ints& lead,
                bool prefill, bool tame, Json& result);

/// Rows handed out of a pool: first as tokens 0, 1, ..., then as shuffled row numbers.
class RowPool {
 public:
  static constexpr std::int64_t none = -1;
  static constexpr std::int64_t outside = -2;

  std::int64_t fresh() { return taken_++; }
  void close(Random& random, std::int64_t spare);
  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  /// The row of a token, -1, or a number outside the pool.
  std::int64_t resolve(Random& random, std::int64_t token) const;
  Ints resolve(Random& random, const Ints& tokens) const;

 private:
  std::int64_t taken_ = 0;
  Ints rows_;
};

/// A state pool, its unread rows poisoned when asked.
Json draw_states(Random& random, const RuleFeatures& features, const Heads& heads,
                 std::int64_t rows, const Ints& read, bool poisons);

/// A page table (E10) whose calls keep E13.
struct PagePlan {
  std::int64_t page_size = 64;
  std::int64_t pages = 0;  // of the pool
  Ints cu_seqlens = {0};
  Ints prefix;
  Ints indices;
  Ints indptr = {0};
  Ints last_page_len;
  Ints read;  // pages whose states the call reads

  std::int64_t sequences() const { return static_cast<std::int64_t>(prefix.size()); }
  std::int64_t tokens() const { return cu_seqlens.back(); }
};

struct PageFeatures {
  std::int64_t page_size = 64;
  bool decode = false;
  bool shared = false;   // prefix pages in several sequences
  bool padded = false;   // scratch pages and sequences without pages
  bool strange = false;  // untouched pages with ids of no page, a tail nobody owns
  std::int64_t most_new = 5;
  std::int64_t most_prefix = 140;
};

PagePlan draw_pages(Random& random, const PageFeatures& features);
/// Adds page_indices, page_indptr, page_size, last_page_len and, in prefill, cu_seqlens.
void add_pages(Random& random, const PagePlan& plan, bool prefill, Json& result);

}  // namespace quire_tests
