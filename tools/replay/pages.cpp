// The page allocator and its prefix cache.
#include "pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace quire::replay {

PageCache::PageCache(std::int64_t pages, std::int64_t page_size)
    : page_size_(page_size), pages_(static_cast<std::size_t>(pages)), entries_(pages_.size()), free_(pages_.size()) {
  for (PageId id = 0; id < pages; ++id) {
    Page& fresh = page(id);
    fresh.state = id;
    fresh.slots.resize(static_cast<std::size_t>(page_size));
    std::iota(fresh.slots.begin(), fresh.slots.end(), id * page_size);
    free_[static_cast<std::size_t>(pages - 1 - id)] = id;
  }
}

PageId PageCache::give(PageId id) {
  Page& given = page(id);
  given.holders = 1;
  counts_.allocated += 1;
  counts_.reused += given.was_used ? 1 : 0;
  last_was_fresh_ = !given.was_used;
  given.was_used = true;
  count_held();
  return id;
}

PageId PageCache::take() {
  last_was_evicted_ = false;
  if (free_.empty()) {
    const PageId oldest = idle_.begin()->second;
    idle_.erase(idle_.begin());
    cache_.erase(entries_[static_cast<std::size_t>(oldest)].place);
    page(oldest).is_shared = false;
    counts_.evicted += 1;
    last_was_evicted_ = true;
    return give(oldest);
  }
  const PageId id = free_.back();
  free_.pop_back();
  return give(id);
}

PageId PageCache::latest_held() const {
  PageId latest = -1;
  for (const auto& [key, id] : cache_) {
    if (page(id).holders > 0 && (latest < 0 || entries_[static_cast<std::size_t>(id)].used > entries_[static_cast<std::size_t>(latest)].used)) latest = id;
  }
  return latest;
}

bool PageCache::share(PageId id, PrefixKey key) {
  const auto [place, is_new] = cache_.try_emplace(std::move(key), id);
  if (!is_new) return false;
  page(id).is_shared = true;
  entries_[static_cast<std::size_t>(id)] = {place, ++numbers_, ++uses_};
  counts_.cached += 1;
  return true;
}

PageId PageCache::find(const PrefixKey& key) const {
  const auto found = cache_.find(key);
  return found == cache_.end() ? -1 : found->second;
}

void PageCache::hold(PageId id) {
  Entry& entry = entries_[static_cast<std::size_t>(id)];
  if (page(id).holders == 0) idle_.erase({entry.used, id});
  page(id).holders += 1;
  entry.used = ++uses_;
  counts_.shared += 1;
  count_held();
}

void PageCache::release(PageId id) {
  Page& released = page(id);
  if (--released.holders > 0) return;
  if (released.is_shared) {
    Entry& entry = entries_[static_cast<std::size_t>(id)];
    entry.used = ++uses_;
    idle_.emplace(entry.used, id);
  } else {
    free_.push_back(id);
  }
}

void PageCache::release(const std::vector<PageId>& pages) {
  for (auto id = pages.rbegin(); id != pages.rend(); ++id) release(*id);
}

void PageCache::count_held() { counts_.most_held = std::max(counts_.most_held, size() - available()); }

std::vector<PageId> PageCache::shared_pages() const {
  std::vector<PageId> pages;
  for (const auto& [key, id] : cache_) pages.push_back(id);
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::string PageCache::imbalance() const {
  std::vector<PageId> slot_owners(pages_.size() * static_cast<std::size_t>(page_size_), -1), state_owners(pages_.size(), -1);
  for (PageId id = 0; id < size(); ++id) {
    const Page& one = page(id);
    if (one.holders != 0) return fmt::format("page {} has {} holders, and no request is left", id, one.holders);
    // Drafts that are kept exchange slots and states: each stays with one page.
    PageId& state_owner = state_owners[static_cast<std::size_t>(one.state)];
    if (state_owner >= 0) return fmt::format("pages {} and {} have one state, {}", state_owner, id, one.state);
    state_owner = id;
    for (const std::int64_t slot : one.slots) {
      PageId& slot_owner = slot_owners[static_cast<std::size_t>(slot)];
      if (slot_owner >= 0) return fmt::format("pages {} and {} have one slot, {}", slot_owner, id, slot);
      slot_owner = id;
    }
  }
  const std::vector<PageId> cached = shared_pages();
  for (PageId id = 0; id < size(); ++id) {
    const bool is_cached = std::binary_search(cached.begin(), cached.end(), id);
    if (page(id).is_shared != is_cached) return fmt::format("page {} counts as {}shared, and {} key names it", id, is_cached ? "not " : "", is_cached ? "a" : "no");
  }
  if (available() != size()) return fmt::format("{} pages can be had of {}, and no request is left", available(), size());
  return {};
}

}  // namespace quire::replay
