// Tensors of the ABI as kernels take them.
#include "views.h"

#include <algorithm>
#include <vector>

namespace quire::gpu {

std::int32_t bytes_of(quire_dtype dtype) {
  switch (dtype) {
    case QUIRE_I64:
    case QUIRE_F64: return 8;
    case QUIRE_I32:
    case QUIRE_F32: return 4;
    case QUIRE_I16:
    case QUIRE_F16:
    case QUIRE_BF16: return 2;
    default: return 1;
  }
}

TensorView view_of(const quire_tensor* tensor) {
  TensorView view;
  if (tensor == nullptr) return view;
  view.data = tensor->data;
  view.dtype = tensor->dtype;
  view.element_bytes = bytes_of(tensor->dtype);
  for (int axis = 0; axis < std::min(tensor->rank, 4); ++axis) {
    view.sizes[axis] = tensor->shape[axis];
    view.strides[axis] = tensor->strides[axis];
  }
  return view;
}

TensorView with_second_token(TensorView view) {
  if (view.element_bytes == 0) return view;
  for (int axis = 3; axis > 1; --axis) {
    view.sizes[axis] = view.sizes[axis - 1];
    view.strides[axis] = view.strides[axis - 1];
  }
  view.sizes[1] = 1;
  view.strides[1] = 0;
  return view;
}

IndexView view_of(const quire_index& index) {
  IndexView view;
  view.kind = index.kind;
  view.block_size = index.reads;
  view.window = index.window;
  view.context = index.table != nullptr ? index.table->shape[1] : index.pos->shape[1];
  view.pos = view_of(index.pos);
  view.table = view_of(index.table);
  for (std::int64_t n = 0; n < index.block_table_count; ++n) {
    if (index.block_tables[n].block_size == index.reads) view.table = view_of(index.block_tables[n].blocks);
  }
  view.row = view_of(index.row);
  view.columns = view_of(index.columns);
  view.slots = view_of(index.slots);
  view.sees = view_of(index.sees);
  return view;
}

namespace {

// An axis of a row: its size, and its stride in both tensors, in bytes.
struct Axis {
  std::int64_t size, from, to;
};

bool all_divisible(const quire_tensor& tensor, int leading_axes, std::int64_t unit) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % static_cast<std::uintptr_t>(unit) != 0) return false;
  for (int axis = 0; axis < leading_axes; ++axis) {
    if (tensor.strides[axis] * bytes_of(tensor.dtype) % unit != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<RowShape> row_shape(const quire_tensor& from, int from_axis, const quire_tensor& to, int to_axis) {
  const std::int64_t element = bytes_of(from.dtype);
  std::vector<Axis> axes;  // outermost first
  RowShape row;
  row.units = 1;
  for (int n = 0; from_axis + n < from.rank; ++n) {
    const Axis axis{from.shape[from_axis + n], from.strides[from_axis + n] * element, to.strides[to_axis + n] * element};
    row.units *= axis.size;
    if (axis.size == 1) continue;
    const bool folds = !axes.empty() && axes.back().from == axis.from * axis.size && axes.back().to == axis.to * axis.size;
    if (folds)
      axes.back() = {axes.back().size * axis.size, axis.from, axis.to};
    else
      axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, element, element});
  if (row.units == 0) axes = {{0, element, element}};
  if (static_cast<int>(axes.size()) > RowShape::most_axes) return std::nullopt;

  // Elements that lie side by side are copied up to 8 bytes at a time, where every row begins and steps evenly.
  std::int64_t unit = element;
  Axis& inner = axes.back();
  const auto fits = [&](std::int64_t bytes) {
    const bool even =
        std::all_of(axes.begin(), axes.end() - 1, [&](const Axis& axis) { return axis.from % bytes == 0 && axis.to % bytes == 0; });
    return even && inner.size * element % bytes == 0 && all_divisible(from, from_axis, bytes) && all_divisible(to, to_axis, bytes);
  };
  if (inner.from == element && inner.to == element) {
    while (unit < 8 && fits(unit * 2)) unit *= 2;
    inner.size = inner.size * element / unit;
    inner.from = inner.to = unit;
    row.units = row.units * element / unit;
  }
  row.unit_bytes = static_cast<std::int32_t>(unit);
  row.axes = static_cast<std::int32_t>(axes.size());
  for (std::size_t n = 0; n < axes.size(); ++n) {
    row.sizes[n] = axes[n].size;
    row.from_bytes[n] = axes[n].from;
    row.to_bytes[n] = axes[n].to;
  }
  return row;
}

}  // namespace quire::gpu
