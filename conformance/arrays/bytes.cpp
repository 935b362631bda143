// Bytes of array files: sizes that are checked, and text for messages.
#include "bytes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace quire::arrays {

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string head(text.substr(0, longest));
  if (text.size() > longest) head += "...";
  return nlohmann::json(head).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string listed(std::span<const std::string> names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (const std::string& name : names.subspan(0, std::min(most, names.size()))) {
    if (!text.empty()) text += ", ";
    text += shown(name);
  }
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::uint64_t dense_bytes(DType dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > max_rank) {
    reject("file", fmt::format("a shape of {} axes", shape.size()),
           fmt::format("at most {} axes", max_rank));
  }
  // Strides of an empty tensor multiply its other axes, so these must fit too.
  Shape without_empty(shape.begin(), shape.end());
  std::replace(without_empty.begin(), without_empty.end(), std::int64_t{0}, std::int64_t{1});
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count_elements(without_empty, "file"), size_of(dtype), &bytes)) {
    reject("file", fmt::format("shape {}", to_string(shape)), "fewer than 2^63 bytes");
  }
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return is_empty ? 0 : static_cast<std::uint64_t>(bytes);
}

void require_bools(const Tensor& tensor) {
  if (tensor.dtype() != DType::boolean) return;
  for (const std::byte value : bytes_of(tensor)) {
    if (value > std::byte{1}) {
      reject("file", fmt::format("a bool of byte {}", std::to_integer<int>(value)),
             "bytes 0 and 1");
    }
  }
}

Tensor copy_dense(DType dtype, const Shape& shape, Bytes data) {
  Tensor tensor = Tensor::empty(dtype, shape, "file");
  if (!data.empty()) std::memcpy(tensor.raw(), data.data(), data.size());
  require_bools(tensor);
  return tensor;
}

Tensor host_dense(const Tensor& tensor) {
  if (!tensor.defined()) reject("file", "no tensor to write", "a host tensor");
  if (!tensor.device().is_host()) {
    reject("file", fmt::format("a tensor on device type {} to write", tensor.device().type),
           "a host tensor");
  }
  return tensor.is_dense() ? tensor : tensor.clone();
}

Bytes bytes_of(const Tensor& dense) {
  return {dense.raw(), static_cast<std::size_t>(dense.elements() * size_of(dense.dtype()))};
}

std::vector<std::byte> with_capacity(std::uint64_t size) {
  std::vector<std::byte> bytes;
  try {
    bytes.reserve(size);
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw Error(ErrorCode::unavailable, "file", fmt::format("file: no memory for {} bytes", size));
  }
  return bytes;
}

}  // namespace quire::arrays
