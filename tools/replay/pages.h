// The pages of the pools: who holds which, which hold a prefix that others may share, which one is evicted next.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace quire::replay {

/// A page's place in the allocator, and its name in reports.
using PageId = std::int64_t;

/// One row of every recurrent-state pool, and page_size slots of the attention pools. Which ones is the page's own affair: a draft that is
/// kept exchanges them for those that it was stored in, so a page's slots need not stand side by side, and nothing is copied.
struct Page {
  std::int64_t state = 0;
  std::vector<std::int64_t> slots;
  std::int64_t holders = 0;   ///< sequences that name it
  bool is_shared = false;     ///< in the prefix cache: nobody writes it any more
  bool was_used = false;      ///< given out before: it holds something
};

/// The cache's key of a page: the page before it, by the cache's own number (0: none), and the blocks that its tokens come from.
struct PrefixKey {
  std::uint64_t before = 0;
  std::vector<std::int64_t> blocks;
  auto operator<=>(const PrefixKey&) const = default;
};

struct PageCounts {
  std::int64_t allocated = 0;   ///< pages given out to be written, a draft's scratch pages included
  std::int64_t shared = 0;      ///< pages that a sequence took from the cache
  std::int64_t cached = 0;      ///< pages that entered it
  std::int64_t evicted = 0;
  std::int64_t reused = 0;      ///< of the allocated, those that had been written before
  std::int64_t most_held = 0;   ///< at one time
};

class PageCache {
 public:
  PageCache(std::int64_t pages, std::int64_t page_size);

  std::int64_t size() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t page_size() const { return page_size_; }
  const Page& page(PageId id) const { return pages_[static_cast<std::size_t>(id)]; }
  Page& page(PageId id) { return pages_[static_cast<std::size_t>(id)]; }
  const PageCounts& counts() const { return counts_; }

  /// Pages that `take` can give: free ones and cached ones that nobody holds.
  std::int64_t available() const { return static_cast<std::int64_t>(free_.size() + idle_.size()); }
  /// A page to write, its old contents in place: a free one, else the cached one that was used longest ago. At least one must be available.
  PageId take();
  /// Whether the last page that was taken had been in the cache until then, or had never been given out before.
  bool last_was_evicted() const { return last_was_evicted_; }
  bool last_was_fresh() const { return last_was_fresh_; }

  /// Puts a written page into the cache. False where another page has the key: then it stays the caller's own.
  bool share(PageId id, PrefixKey key);
  /// The cached page of a key, or -1.
  PageId find(const PrefixKey& key) const;
  /// The cache's number of a shared page, for the key of the next.
  std::uint64_t number(PageId id) const { return entries_[static_cast<std::size_t>(id)].number; }
  /// Names a cached page: it can't be evicted until it is released.
  void hold(PageId id);
  /// A sequence gives its pages back: from the last on, so that a prefix outlives what goes on from it.
  void release(const std::vector<PageId>& pages);

  /// Every page in the cache.
  std::vector<PageId> shared_pages() const;
  /// The cached page that was used last and that a sequence holds, or -1: for --fault evict.
  PageId latest_held() const;
  /// What is wrong with the books when no sequence is left: a page that is still held or is lost, a slot or a state that two pages name, a
  /// page that counts as shared and has no key, or the other way about. Empty: nothing.
  std::string imbalance() const;

 private:
  struct Entry {
    std::map<PrefixKey, PageId>::iterator place;
    std::uint64_t number = 0, used = 0;
  };
  PageId give(PageId id);
  void release(PageId id);
  void count_held();

  std::int64_t page_size_;
  std::vector<Page> pages_;
  std::vector<Entry> entries_;               // of shared pages
  std::vector<PageId> free_;                 // the last one is given out next
  std::set<std::pair<std::uint64_t, PageId>> idle_;  // cached pages without holders, by last use
  std::map<PrefixKey, PageId> cache_;
  std::uint64_t numbers_ = 0, uses_ = 0;
  bool last_was_evicted_ = false, last_was_fresh_ = false;
  PageCounts counts_;
};

}  // namespace quire::replay
