// Tensors of the ABI as kernels take them, and how rows are copied between two of them.
#pragma once

#include <optional>

#include "parameters.h"

namespace quire::gpu {

std::int32_t bytes_of(quire_dtype dtype);

/// An absent tensor's view is absent. Of a tensor with more than four axes the first four.
TensorView view_of(const quire_tensor* tensor);
/// [T, H, *] or [T, H] as [T, 1, H, *] or [T, 1, H]: an axis of one second token (RuleView).
TensorView with_second_token(TensorView view);

IndexView view_of(const quire_index& index);

/// Copies of the axes of `from` from `from_axis` on to those of `to` from `to_axis` on, which have equal sizes. Nothing where more axes
/// remain than a RowShape has once those that lie evenly in both are folded together.
std::optional<RowShape> row_shape(const quire_tensor& from, int from_axis, const quire_tensor& to, int to_axis);

}  // namespace quire::gpu
