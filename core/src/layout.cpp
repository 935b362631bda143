// Layouts: which strides are taken, and whether two tensors share memory.
#include "layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace quire {

namespace {

struct Axis {
  std::int64_t stride;
  std::int64_t size;
};

// Axes of more than one element, least stride first.
std::vector<Axis> long_axes(const Tensor& tensor) {
  std::vector<Axis> axes;
  for (std::int64_t axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.size(axis) > 1) axes.push_back({tensor.stride(axis), tensor.size(axis)});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  return axes;
}

// Elements from the first to the last, both included; -1 on overflow.
std::int64_t span_of(std::span<const Axis> axes) {
  std::int64_t span = 1;
  for (const Axis& axis : axes) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(axis.stride, axis.size - 1, &reach) || __builtin_add_overflow(span, reach, &span)) return -1;
  }
  return span;
}

}  // namespace

void require_layout(const Tensor& tensor, std::string_view argument) {
  const auto given = [&] { return "strides " + to_string(tensor.strides()) + " for shape " + to_string(tensor.shape()); };
  constexpr std::string_view allowed = "a dense innermost axis and other axes that do not overlap";
  if (tensor.elements() == 0) return;
  if (tensor.raw() == nullptr) reject(argument, "null memory", "memory for its elements");
  const std::int64_t last = tensor.rank() - 1;
  // With one axis alone the rows are single elements, and axis 0 may have any stride.
  if (last >= 1 && tensor.size(last) > 1 && tensor.stride(last) != 1) reject(argument, given(), allowed);
  std::int64_t span = 1;
  for (const Axis& axis : long_axes(tensor)) {
    std::int64_t reach = 0;
    if (axis.stride < span) reject(argument, given(), allowed);
    if (__builtin_mul_overflow(axis.stride, axis.size - 1, &reach) || __builtin_add_overflow(span, reach, &span)) {
      reject(argument, given(), "offsets below 2^63");
    }
  }
}

bool same_memory(const Tensor& one, const Tensor& other) {
  return one.raw() == other.raw() && one.dtype() == other.dtype() && one.shape() == other.shape() && one.strides() == other.strides();
}

namespace {

struct Extent {
  std::vector<Axis> axes;  // in bytes, least stride first; the element itself is the innermost
  std::int64_t bytes() const { return span_of(axes); }
};

Extent extent_of(const Tensor& tensor) {
  Extent extent{{{1, size_of(tensor.dtype())}}};
  for (const Axis& axis : long_axes(tensor)) extent.axes.push_back({axis.stride * size_of(tensor.dtype()), axis.size});
  return extent;
}

// Whether an element of `other`, which begins `apart` bytes behind `one`, can share a byte with one of `one`. While the outermost steps
// are equal, only the index differences that bring the inner parts together are followed.
bool overlap(Extent one, Extent other, std::int64_t apart) {
  if (apart >= one.bytes() || -apart >= other.bytes()) return false;
  if (one.axes.size() == 1 || other.axes.size() == 1 || one.axes.back().stride != other.axes.back().stride) return true;
  const Axis outer = one.axes.back();
  const Axis other_outer = other.axes.back();
  one.axes.pop_back();
  other.axes.pop_back();
  const std::int64_t near = apart / outer.stride;
  for (std::int64_t steps = near - 1; steps <= near + 1; ++steps) {
    if (steps > outer.size - 1 || -steps > other_outer.size - 1) continue;
    if (overlap(one, other, apart - steps * outer.stride)) return true;
  }
  return false;
}

}  // namespace

bool may_overlap(const Tensor& one, const Tensor& other) {
  if (!one.defined() || !other.defined() || one.elements() == 0 || other.elements() == 0 || !(one.device() == other.device())) return false;
  return overlap(extent_of(one), extent_of(other), other.raw() - one.raw());
}

}  // namespace quire
