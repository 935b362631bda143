// Tensors as JSON text.
#include "tensor_text.h"

#include "reserved.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace quire::conformance {

namespace {

void append_element(std::string& text, DType dtype, const std::byte* element) {
  auto out = std::back_inserter(text);
  if (dtype == DType::boolean) {
    text += read_integer(dtype, element) != 0 ? "true" : "false";
  } else if (is_integer(dtype)) {
    fmt::format_to(out, "{}", read_integer(dtype, element));
  } else {
    const double number = read_number(dtype, element);
    if (std::isnan(number)) {
      text += "\"nan\"";
    } else if (std::isinf(number)) {
      text += number > 0 ? "\"inf\"" : "\"-inf\"";
    } else if (number == 0) {
      text += std::signbit(number) ? "-0.0" : "0.0";
    } else {
      fmt::format_to(out, "{}", number);  // the shortest text that is this float64, whatever the dtype: readers take numbers as float64
    }
  }
}

void append_axes(std::string& text, const Tensor& tensor, std::size_t axis, const std::byte* element, bool& first) {
  if (axis == tensor.shape().size()) {
    if (!first) text += ',';
    first = false;
    return append_element(text, tensor.dtype(), element);
  }
  const std::int64_t step = tensor.strides()[axis] * size_of(tensor.dtype());
  for (std::int64_t i = 0; i < tensor.shape()[axis]; ++i) append_axes(text, tensor, axis + 1, element + i * step, first);
}

}  // namespace

namespace {

// The rows in use of a tensor that is mostly reserved memory.
void append_rows(std::string& text, const Tensor& tensor) {
  const std::int64_t row_bytes = tensor.elements() / tensor.size(0) * size_of(tensor.dtype());
  fmt::format_to(std::back_inserter(text), "{{\"dtype\":\"{}\",\"shape\":[{}],\"rows\":{{", name(tensor.dtype()), fmt::join(tensor.shape(), ","));
  std::int64_t next = 0;
  bool first = true;
  for (const auto& [begin, end] : used_ranges(tensor.raw(), static_cast<std::size_t>(tensor.size(0) * row_bytes))) {
    for (std::int64_t row = std::max(next, static_cast<std::int64_t>(begin) / row_bytes); row * row_bytes < static_cast<std::int64_t>(end); ++row) {
      next = row + 1;
      const std::byte* bytes = tensor.raw() + row * row_bytes;
      if (std::all_of(bytes, bytes + row_bytes, [](std::byte b) { return b == std::byte{0}; })) continue;
      fmt::format_to(std::back_inserter(text), "{}\"{}\":[", first ? "" : ",", row);
      first = false;
      for (std::int64_t at = 0; at < row_bytes; at += size_of(tensor.dtype())) {
        if (at > 0) text += ',';
        append_element(text, tensor.dtype(), bytes + at);
      }
      text += ']';
    }
  }
  text += "}}";
}

}  // namespace

void append_tensor(std::string& text, const Tensor& tensor) {
  if (tensor.is_dense() && tensor.rank() > 0 && is_reserved_size(static_cast<std::size_t>(tensor.elements() * size_of(tensor.dtype())))) return append_rows(text, tensor);
  fmt::format_to(std::back_inserter(text), "{{\"dtype\":\"{}\",\"shape\":[{}],\"data\":[", name(tensor.dtype()), fmt::join(tensor.shape(), ","));
  bool first = true;
  if (tensor.elements() > 0) append_axes(text, tensor, 0, tensor.raw(), first);
  text += "]}";
}

nlohmann::json tensor_json(const Tensor& tensor) {
  std::string text;
  append_tensor(text, tensor);
  return nlohmann::json::parse(text);
}

}  // namespace quire::conformance
