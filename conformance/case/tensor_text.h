// Tensors as JSON text: the object form, every number printed so that it reads back exactly.
#pragma once

#include <quire/tensor.h>

#include <nlohmann/json.hpp>

#include <string>

namespace quire::conformance {

/// Appends {"dtype":...,"shape":[...],"data":[...]}.
void append_tensor(std::string& text, const Tensor& tensor);
/// The same as a value.
nlohmann::json tensor_json(const Tensor& tensor);

}  // namespace quire::conformance
