// Reading a page table on the host: tokens and pages of each sequence (law E10).
#pragma once

#include <quire/index_view.h>
#include <quire/ops.h>

namespace quire {

/// E10: one sequence's tokens over its pages. `pages` of page_size tokens, the last one filled with last_page_len.
struct PagedSequence {
  std::int64_t pages = 0;
  std::int64_t total = 0;  ///< tokens after the call
  std::int64_t fresh = 0;  ///< new tokens of the call
  std::int64_t page_size = 0;

  std::int64_t prefix() const { return total - fresh; }
  std::int64_t page_of(std::int64_t token) const { return token / page_size; }
};

/// The lists of a call, at the ABI. The tensors must outlive it.
class PageLists {
 public:
  explicit PageLists(const quire_gdn_slots_args& args)
      : cu_seqlens(args.cu_seqlens),
        page_indices(args.page_indices),
        page_indptr(args.page_indptr),
        last_page_len(args.last_page_len),
        page_size_(args.page_size) {}
  PageLists(const Tensor& cu_seqlens_tensor, const PagedSequences& pages) : page_size_(pages.page_size) {
    const auto view = [](const Tensor& tensor) {
      const quire_tensor abi = tensor.view();
      return tensor.defined() ? IntegerView(&abi) : IntegerView();
    };
    cu_seqlens = view(cu_seqlens_tensor);
    page_indices = view(pages.page_indices);
    page_indptr = view(pages.page_indptr);
    last_page_len = view(pages.last_page_len);
  }

  PagedSequence sequence(std::int64_t i, std::int64_t fresh) const {
    const std::int64_t pages = page_indptr(i + 1) - page_indptr(i);
    const std::int64_t total = pages == 0 ? 0 : (pages - 1) * page_size_ + last_page_len(i);
    return {pages, total, fresh, page_size_};
  }
  PagedSequence prefill(std::int64_t i) const { return sequence(i, cu_seqlens(i + 1) - cu_seqlens(i)); }
  /// A sequence without pages is padded (E10).
  PagedSequence decode(std::int64_t i) const { return sequence(i, 1); }
  std::int64_t page(std::int64_t i, std::int64_t j) const { return page_indices(page_indptr(i) + j); }

  IntegerView cu_seqlens, page_indices, page_indptr, last_page_len;

 private:
  std::int64_t page_size_;
};

}  // namespace quire
