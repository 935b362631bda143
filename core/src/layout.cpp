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

bool may_overlap(const Tensor& one, const Tensor& other) {
  if (!one.defined() || !other.defined() || one.elements() == 0 || other.elements() == 0 || !(one.device() == other.device())) return false;
  const auto bytes = [](const Tensor& tensor, std::span<const Axis> axes) { return span_of(axes) * size_of(tensor.dtype()); };
  const std::vector<Axis> axes = long_axes(one);
  const std::vector<Axis> other_axes = long_axes(other);
  const auto begin = reinterpret_cast<std::uintptr_t>(one.raw());
  const auto other_begin = reinterpret_cast<std::uintptr_t>(other.raw());
  if (begin + static_cast<std::uintptr_t>(bytes(one, axes)) <= other_begin) return false;
  if (other_begin + static_cast<std::uintptr_t>(bytes(other, other_axes)) <= begin) return false;
  // Interleaved rows, as keys and values in one pool: equal outermost steps, and the inner parts lie apart within one step.
  if (!axes.empty() && !other_axes.empty()) {
    const std::int64_t step = axes.back().stride * size_of(one.dtype());
    if (step == other_axes.back().stride * size_of(other.dtype())) {
      const std::int64_t inner = bytes(one, std::span(axes).first(axes.size() - 1));
      const std::int64_t other_inner = bytes(other, std::span(other_axes).first(other_axes.size() - 1));
      const auto apart = static_cast<std::int64_t>(begin < other_begin ? (other_begin - begin) : (begin - other_begin)) % step;
      const std::int64_t ahead = begin <= other_begin ? apart : (step - apart) % step;  // of `other` behind a row of `one`
      if (ahead >= inner && ahead + other_inner <= step) return false;
    }
  }
  return true;
}

}  // namespace quire
