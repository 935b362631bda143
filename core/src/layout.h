// Layouts that every op takes: dense innermost, other axes nesting without overlap (semantics, first page).
#pragma once

#include <quire/tensor.h>

namespace quire {

/// Raises invalid_argument naming `argument` unless the innermost axis is dense (a lone axis may have any stride) and no two elements share an address.
void require_layout(const Tensor& tensor, std::string_view argument);

/// Whether two tensors may share bytes. Exact while their outer strides are equal, as of keys and values interleaved in one pool; other
/// tangled layouts count as sharing.
bool may_overlap(const Tensor& one, const Tensor& other);

/// The same memory in the same layout.
bool same_memory(const Tensor& one, const Tensor& other);

}  // namespace quire
