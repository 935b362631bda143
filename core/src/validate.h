// The one place where arguments are checked: one function per op, called before any backend runs.
//
// Each raises invalid_argument naming the field of the case format (A, D5, E4, E9, E13, F1, F2) and changes nothing. Checks of values are
// made where the tensor lies on the host.
#pragma once

#include <quire/ops.h>

#include <string_view>

namespace quire::validate {

/// C: shapes and dtypes of an extend.
void extend(const Index& index, const Tensor& values, const Pool& pool);

/// D5.
void attend(const Index& index, const Tensor& q, const Tensor& k, const Tensor& v, const Pool& k_pool, const Pool& v_pool,
            const AttendOptions& options);

/// E1's sizes, after the shared inputs were checked.
struct GdnSizes {
  std::int64_t heads = 0;  ///< H
  std::int64_t key_size = 0;
  std::int64_t value_size = 0;
  Shape lead;  ///< the axes before the heads: [T] or [B, S]
};

/// E4, E9.
GdnSizes gdn_prefill(const GdnPrefill& args);
/// E6, E9. `paged`: the row tensors come from a page table and are not given.
GdnSizes gdn_decode(const GdnDecode& args, bool paged);
/// F2.
GdnSizes gdn_verify(const Index& index, const GdnInputs& inputs, const Pool& state_pool, const Tensor& state_indices,
                    const Tensor& state_slots);

/// E10, E11, E13. Answers n.
std::int64_t prefill_pages(const Tensor& cu_seqlens, const PagedSequences& pages, std::optional<std::int64_t> num_pages);
/// E10, E12, E13. Answers n, the given one where the number of sequences is known.
std::int64_t decode_pages(const PagedSequences& pages, std::optional<std::int64_t> num_pages, std::optional<std::int64_t> n = {});
/// A paged call's `state_pool`: E1's sizes, and no memory of the inputs.
void state_pool(const Pool& pool, const GdnSizes& sizes, const GdnInputs& inputs);

/// An index's own tensors lie on `device`, and share no memory with the pools that the call changes.
void index_tensors(const Index& index, const Device& device, std::span<const std::pair<std::string_view, const Pool*>> pools);

}  // namespace quire::validate
