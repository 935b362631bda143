// NumPy's .npz files: named arrays, each an .npy file in a zip archive.
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

/// The names of the arrays (members without ".npy"), in the archive's order. Checks the whole
/// directory but reads no array. Raises invalid_argument (`file`), also for a member not named
/// "*.npy".
std::vector<std::string> npz_names(std::span<const std::byte> file);

/// One array, as read_npy; the others may be unreadable. Raises invalid_argument (`key`) with the
/// known names where there is none of this name, otherwise (`file`).
Tensor read_npz_entry(std::span<const std::byte> file, std::string_view key,
                      std::optional<DType> as = {});

/// Every array by name. `as` names dtypes for untyped arrays (bf16, fp8); a name in it that the
/// file lacks raises invalid_argument (`key`). Stored and deflated members (the latter where Quire
/// was built with zlib), zip64, CRCs checked. Raises as read_npy (`file`).
std::map<std::string, Tensor> read_npz(std::span<const std::byte> file,
                                       const std::map<std::string, DType>& as = {});

/// Stored members in the order of their names; the same bytes for the same tensors.
/// Raises as write_npy, and invalid_argument (`key`) for an empty name or one above 65531 bytes.
std::vector<std::byte> write_npz(const std::map<std::string, Tensor>& tensors);

}  // namespace quire::arrays
