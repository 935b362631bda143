// Validation of page tables (laws E10-E13).
#include <quire/index_view.h>

#include <quire/page_walk.h>
#include "require.h"
#include "validate.h"

#include <limits>
#include <unordered_map>

namespace quire::validate {

namespace {

// The rows and counts that the slots ops answer are i32 (E11).
constexpr std::int64_t most_i32 = std::numeric_limits<std::int32_t>::max();

// Which sequence writes and which reads a page of the call.
class PageUse {
 public:
  explicit PageUse(std::optional<std::int64_t> num_pages) : num_pages_(num_pages) {}

  void read(std::int64_t sequence, std::int64_t page) {
    require_in_pool(sequence, page);
    const auto [reader, is_new] = readers_.try_emplace(page, sequence);
    if (!is_new && reader->second != sequence) reader->second = several;
    require_one_sequence(page);
  }
  void write(std::int64_t sequence, std::int64_t page) {
    require_in_pool(sequence, page);
    const auto [writer, is_new] = writers_.try_emplace(page, sequence);
    if (!is_new) {
      reject("page_indices", fmt::format("page {} to be written twice (sequences {} and {})", page, writer->second, sequence), "a page of its own for each write");
    }
    require_one_sequence(page);
  }

 private:
  static constexpr std::int64_t several = -1;

  void require_in_pool(std::int64_t sequence, std::int64_t page) const {
    if (page > most_i32) reject("page_indices", fmt::format("page {} for sequence {}", page, sequence), "ids of 32 bits");
    if (page < 0 || (num_pages_ && page >= *num_pages_)) {
      reject("page_indices", fmt::format("page {} for sequence {}", page, sequence),
             !num_pages_        ? "0 or more where the call reads or writes"
             : *num_pages_ == 0 ? "no page, since the pool has none"
                                : fmt::format("pages 0 to {} where the call reads or writes", *num_pages_ - 1));
    }
  }
  void require_one_sequence(std::int64_t page) const {
    const auto writer = writers_.find(page);
    const auto reader = readers_.find(page);
    if (writer != writers_.end() && reader != readers_.end() && writer->second != reader->second) {
      reject("page_indices", fmt::format("page {}, written by sequence {} and read by another", page, writer->second),
             "written pages that no other sequence reads or writes");
    }
  }

  std::optional<std::int64_t> num_pages_;
  std::unordered_map<std::int64_t, std::int64_t> readers_, writers_;
};

void page_size(std::int64_t size) {
  if (size <= 0 || size % 64 != 0) reject("page_size", fmt::format("{}", size), "a positive multiple of 64");
}

// E10's shapes. Answers n.
std::int64_t page_lists(const PagedSequences& pages, const Device& device, std::optional<std::int64_t> n) {
  page_size(pages.page_size);
  const std::string one_axis = "i32 or i64 of one axis";
  require_present(pages.page_indices, "page_indices", device, one_axis);
  if (pages.page_indices.rank() != 1) reject("page_indices", describe(pages.page_indices), one_axis);
  require_integers(pages.page_indices, "page_indices", device, pages.page_indices.shape());
  require_present(pages.page_indptr, "page_indptr", device, "i32 or i64 [n + 1]");
  if (pages.page_indptr.rank() != 1 || pages.page_indptr.size(0) < 1) reject("page_indptr", describe(pages.page_indptr), "i32 or i64 [n + 1]");
  if (!n) n = pages.page_indptr.size(0) - 1;
  require_integers(pages.page_indptr, "page_indptr", device, {*n + 1});
  require_integers(pages.last_page_len, "last_page_len", device, {*n});
  return *n;
}

// E13's bounds on one sequence's list, before anything is computed from it.
void page_counts(const PageLists& lists, std::int64_t n, std::int64_t page_size) {
  if (lists.page_indptr(0) != 0) reject("page_indptr", fmt::format("a first entry of {}", lists.page_indptr(0)), "0");
  const std::int64_t listed = lists.page_indices.size(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t end = lists.page_indptr(i + 1);
    if (end < lists.page_indptr(i) || end > listed) {
      reject("page_indptr", fmt::format("{} after {} at entry {}", end, lists.page_indptr(i), i + 1),
             fmt::format("entries that never fall, at most the {} page_indices", listed));
    }
    if (end == lists.page_indptr(i)) continue;
    const std::int64_t last = lists.last_page_len(i);
    if (last < 1 || last > page_size) {
      reject("last_page_len", fmt::format("{} for sequence {}", last, i), fmt::format("1 to the page size, {}", page_size));
    }
    std::int64_t full = 0;
    if (__builtin_mul_overflow(end - lists.page_indptr(i), page_size, &full)) {
      reject("page_indptr", fmt::format("{} pages of {} tokens", end - lists.page_indptr(i), page_size), "fewer than 2^63 tokens");
    }
  }
}

void require_pool_size(std::optional<std::int64_t> num_pages) {
  if (num_pages && *num_pages < 0) reject("num_pages", fmt::format("{}", *num_pages), "0 or more");
}

}  // namespace

std::int64_t prefill_pages(const Tensor& cu_seqlens, const PagedSequences& pages, std::optional<std::int64_t> num_pages) {
  const std::string starts = "i32 or i64 [n + 1]: starts at 0 and never falls";
  const Device device = cu_seqlens.defined() ? cu_seqlens.device() : Device{};
  require_present(cu_seqlens, "cu_seqlens", device, starts);
  if (!is_index_integer(cu_seqlens.dtype()) || cu_seqlens.rank() != 1 || cu_seqlens.size(0) < 1) reject("cu_seqlens", describe(cu_seqlens), starts);
  require_pool_size(num_pages);
  const std::int64_t n = page_lists(pages, device, cu_seqlens.size(0) - 1);
  if (!device.is_host()) return n;
  const PageLists lists(cu_seqlens, pages);
  for (std::int64_t i = 0; i <= n; ++i) {
    const std::int64_t before = i == 0 ? 0 : lists.cu_seqlens(i - 1);
    const std::int64_t entry = lists.cu_seqlens(i);
    if (i == 0 ? entry != 0 : entry < before) reject("cu_seqlens", fmt::format("{} at entry {}", entry, i), "a first entry of 0 and entries that never fall");
  }
  page_counts(lists, n, pages.page_size);
  PageUse use(num_pages);
  for (std::int64_t i = 0; i < n; ++i) {
    const PagedSequence sequence = lists.prefill(i);
    if (sequence.total < sequence.fresh) {
      reject("page_indptr", fmt::format("pages of {} tokens for the {} new tokens of sequence {}", sequence.total, sequence.fresh, i),
             "pages for the new tokens at least");
    }
    if (sequence.prefix() > most_i32) {
      reject("page_indptr", fmt::format("pages of {} tokens before the new ones for sequence {}", sequence.prefix(), i), "counts of 32 bits");
    }
    if (sequence.fresh == 0) {  // E14: it reads and writes nothing; the page of its last token is named all the same
      const std::int64_t named = sequence.total > 0 ? lists.page(i, sequence.pages - 1) : 0;
      if (named > most_i32 || named < -most_i32) reject("page_indices", fmt::format("page {} for sequence {}", named, i), "ids of 32 bits");
      continue;
    }
    if (sequence.prefix() > 0) use.read(i, lists.page(i, sequence.page_of(sequence.prefix() - 1)));
    for (std::int64_t j = sequence.page_of(sequence.prefix()); j < sequence.pages; ++j) use.write(i, lists.page(i, j));
  }
  return n;
}

std::int64_t decode_pages(const PagedSequences& pages, std::optional<std::int64_t> num_pages, std::optional<std::int64_t> given) {
  require_pool_size(num_pages);
  const Device device = pages.page_indptr.defined() ? pages.page_indptr.device() : Device{};
  const std::int64_t n = page_lists(pages, device, given);
  if (!device.is_host()) return n;
  const PageLists lists({}, pages);
  page_counts(lists, n, pages.page_size);
  PageUse use(num_pages);
  for (std::int64_t i = 0; i < n; ++i) {
    const PagedSequence sequence = lists.decode(i);
    if (sequence.pages == 0) continue;  // padded
    if (sequence.total < 2) {
      reject("last_page_len", fmt::format("1 with one page for sequence {}", i), "one token or more before the decoded one");
    }
    use.read(i, lists.page(i, sequence.page_of(sequence.prefix() - 1)));
    use.write(i, lists.page(i, sequence.pages - 1));
  }
  return n;
}

}  // namespace quire::validate
