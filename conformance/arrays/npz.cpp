// NumPy's .npz files: named arrays, each an .npy file in a zip archive.
#include "npz.h"

#include "npy.h"
#include "zip.h"

#include <fmt/format.h>

#include <utility>

namespace quire::arrays {

namespace {

constexpr std::string_view suffix = ".npy";

std::string key_of(const ZipMember& member) {
  if (!std::string_view(member.name).ends_with(suffix)) {
    reject("file", fmt::format("the npz member {}", shown(member.name)), "members named \"*.npy\"");
  }
  return member.name.substr(0, member.name.size() - suffix.size());
}

Tensor read_member(Bytes file, const ZipMember& member, std::optional<DType> as) {
  const ZipContent content(file, member);
  try {
    return read_npy(content.bytes(), as);
  } catch (const Error& error) {
    // Says which of the arrays it is.
    std::string_view message = error.what();
    if (message.starts_with("file: ")) message.remove_prefix(6);
    throw Error(error.code(), error.argument(),
                fmt::format("file: npz member {}: {}", shown(member.name), message));
  }
}

[[noreturn]] void reject_key(std::string_view key, const std::vector<std::string>& names) {
  reject("key", shown(key), names.empty() ? "none, as the file holds no arrays" : listed(names));
}

}  // namespace

std::vector<std::string> npz_names(Bytes file) {
  std::vector<std::string> names;
  for (const ZipMember& member : read_zip_directory(file)) names.push_back(key_of(member));
  return names;
}

Tensor read_npz_entry(Bytes file, std::string_view key, std::optional<DType> as) {
  std::vector<std::string> names;
  const std::vector<ZipMember> members = read_zip_directory(file);
  for (const ZipMember& member : members) names.push_back(key_of(member));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == key) return read_member(file, members[i], as);
  }
  reject_key(key, names);
}

std::map<std::string, Tensor> read_npz(Bytes file, const std::map<std::string, DType>& as) {
  std::map<std::string, Tensor> tensors;
  std::vector<std::string> names;
  for (const ZipMember& member : read_zip_directory(file)) {
    names.push_back(key_of(member));
    const auto named = as.find(names.back());
    tensors.emplace(
        names.back(),
        read_member(file, member, named == as.end() ? std::nullopt : std::optional(named->second)));
  }
  for (const auto& [key, dtype] : as) {
    if (!tensors.contains(key)) reject_key(key, names);
  }
  return tensors;
}

std::vector<std::byte> write_npz(const std::map<std::string, Tensor>& tensors) {
  std::vector<Tensor> dense;
  std::vector<ZipInput> members;
  for (const auto& [key, tensor] : tensors) {
    if (key.empty()) reject("key", "an empty name", "a name for each array");
    const Tensor& kept = dense.emplace_back(host_dense(tensor));
    members.push_back(
        {key + std::string(suffix), npy_head(kept.dtype(), kept.shape()), bytes_of(kept)});
  }
  return write_zip(members);
}

}  // namespace quire::arrays
