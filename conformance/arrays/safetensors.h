// .safetensors files: named tensors behind a JSON header.
#pragma once

#include <quire/tensor.h>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::arrays {

/// The names of the tensors, sorted. Checks the whole header but copies no tensor.
std::vector<std::string> safetensors_names(std::span<const std::byte> file);

/// One tensor as a new dense host tensor; the others may be of dtypes that Quire has not. `as` may
/// only repeat the dtype. Raises invalid_argument (`key`) with the known names where there is none
/// of this name, otherwise (`file`).
Tensor read_safetensors_entry(std::span<const std::byte> file, std::string_view key,
                              std::optional<DType> as = {});

/// Every tensor by name. dtypes BOOL I8 U8 I16 I32 I64 F16 BF16 F32 F64 F8_E4M3 F8_E5M2;
/// `__metadata__` is ignored; the tensors' bytes must fill the file without overlap or gap. Raises
/// invalid_argument (`file`). Source: the format's README, huggingface/safetensors.
std::map<std::string, Tensor> read_safetensors(std::span<const std::byte> file);

/// The file that the safetensors library writes for these tensors, without metadata. Raises
/// invalid_argument (`file`) as write_npy, and (`key`) for a name that is empty, "__metadata__" or
/// no UTF-8.
std::vector<std::byte> write_safetensors(const std::map<std::string, Tensor>& tensors);

}  // namespace quire::arrays
