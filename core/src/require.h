// Small checks that the validations are made of.
#pragma once

#include <quire/ops.h>
#include <quire/stream.h>

#include "layout.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace quire::validate {

/// "f32[2, 3]" or "nothing".
inline std::string describe(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{}{}", name(tensor.dtype()), to_string(tensor.shape())) : "nothing";
}

/// A present tensor on `device`, in a layout that every op takes.
inline void require_present(const Tensor& tensor, std::string_view argument, const Device& device, std::string_view allowed) {
  if (!tensor.defined()) reject(argument, "nothing", allowed);
  if (!(tensor.device() == device)) {
    reject(argument, "a tensor on " + to_string(tensor.device()), "the call's device, " + to_string(device));
  }
  require_layout(tensor, argument);
}

/// A present tensor of exactly this shape.
inline void require_shape(const Tensor& tensor, std::string_view argument, const Device& device, const Shape& shape, std::string_view what) {
  const std::string allowed = fmt::format("{} {}", what, to_string(shape));
  require_present(tensor, argument, device, allowed);
  if (tensor.shape() != shape) reject(argument, describe(tensor), allowed);
}

/// An i32 or i64 tensor of exactly this shape.
inline void require_integers(const Tensor& tensor, std::string_view argument, const Device& device, const Shape& shape) {
  require_shape(tensor, argument, device, shape, "i32 or i64");
  if (!is_index_integer(tensor.dtype())) reject(argument, describe(tensor), fmt::format("i32 or i64 {}", to_string(shape)));
}

/// A tensor that the call changes shares no memory with one that it reads or changes otherwise.
inline void require_apart(const Pool& written, std::string_view argument, const Tensor& other, std::string_view other_name) {
  if (written.defined() && written.is_in_place() && may_overlap(written.given(), other)) {
    reject(argument, fmt::format("memory that {} lies in too", other_name), "memory of its own");
  }
}

}  // namespace quire::validate
