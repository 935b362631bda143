// Array files on disk: read and written by their extension.
#pragma once

#include <quire/tensor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::arrays {

/// A file read once, for several arrays of it. Every error names the file.
class ArrayFile {
 public:
  /// Reads a regular .npy, .npz or .safetensors file of at most allowed_bytes().
  /// Raises invalid_argument (`file`).
  explicit ArrayFile(std::filesystem::path path);

  /// The keys that `read` takes; none for .npy.
  std::vector<std::string> names() const;

  /// One array. `key`: empty for .npy, else a name of the file. `as`: see read_npy.
  /// Raises invalid_argument (`key`) with the known keys (the first 20), otherwise (`file`).
  Tensor read(std::string_view key, std::optional<DType> as = {}) const;

 private:
  std::filesystem::path path_;
  Tensor content_;
};

/// One array of a file: ArrayFile(path).read(key, as).
Tensor load(const std::filesystem::path& path, std::string_view key, std::optional<DType> as = {});

/// Writes the tensors into a temporary file beside `path`, then renames it over `path`. Raises
/// invalid_argument (`file`) and leaves neither a partial file nor the temporary one. An .npy file
/// takes exactly one tensor, whose name is not stored.
void save(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors);

}  // namespace quire::arrays
