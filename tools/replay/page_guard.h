// Shared pages keep every bit: a hash of each, compared when a step touches the page, in turn, and at the end.
#pragma once

#include "layers.h"
#include "pages.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace quire::replay {

class PageGuard {
 public:
  PageGuard(const PageCache& pages, const Layers& layers) : pages_(pages), layers_(layers) {}

  /// From now on the page's slots and states must stay as they are.
  void watch(PageId id);
  /// The page was evicted.
  void forget(PageId id) { watched_.erase(id); }
  bool is_watched(PageId id) const { return watched_.contains(id); }

  /// The first layer whose part of a watched page has changed. It is reported once: the page is watched as it is now.
  std::optional<int> changed_layer(PageId id);
  /// The next `count` watched pages, in turn.
  std::vector<PageId> sample(std::int64_t count);
  std::vector<PageId> all() const;

  std::int64_t watched() const { return total_; }  ///< pages that ever were
  std::int64_t compared() const { return compared_; }

 private:
  using Hashes = std::vector<std::uint64_t>;  // by layer
  Hashes hashes(PageId id) const;

  const PageCache& pages_;
  const Layers& layers_;
  std::unordered_map<PageId, Hashes> watched_;
  PageId next_ = 0;
  std::int64_t total_ = 0, compared_ = 0;
};

}  // namespace quire::replay
