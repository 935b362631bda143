// Hashes of shared pages.
#include "page_guard.h"

#include <algorithm>

namespace quire::replay {

PageGuard::Hashes PageGuard::hashes(PageId id) const {
  Hashes all;
  for (int layer = 0; layer < layers_.count(); ++layer) {
    BitHash hash;
    layers_.add_to(hash, pages_.page(id), layer);
    all.push_back(hash.value());
  }
  return all;
}

void PageGuard::watch(PageId id) {
  watched_[id] = hashes(id);
  ++total_;
}

std::optional<int> PageGuard::changed_layer(PageId id) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return {};
  ++compared_;
  Hashes now = hashes(id);
  const auto [was, is] = std::mismatch(found->second.begin(), found->second.end(), now.begin());
  if (is == now.end()) return {};
  const auto layer = static_cast<int>(is - now.begin());
  found->second = std::move(now);
  return layer;
}

std::vector<PageId> PageGuard::sample(std::int64_t count) {
  std::vector<PageId> pages;
  for (PageId looked_at = 0; looked_at < pages_.size() && static_cast<std::int64_t>(pages.size()) < count; ++looked_at) {
    if (is_watched(next_)) pages.push_back(next_);
    next_ = (next_ + 1) % pages_.size();
  }
  return pages;
}

std::vector<PageId> PageGuard::all() const {
  std::vector<PageId> pages;
  for (const auto& [id, hashes] : watched_) pages.push_back(id);
  std::sort(pages.begin(), pages.end());
  return pages;
}

}  // namespace quire::replay
