// Files: opening and reading with one-line errors.
#include "files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace quire::story {

InputFile::InputFile(std::string path, std::string what, const std::string& hint)
    : path_(std::move(path)), what_(std::move(what)) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("no such file; " + hint);
  if (error) fail(error.message());
  // A pipe or a device has no size to hold a header against.
  if (status.type() != std::filesystem::file_type::regular) fail("not a regular file");
  size_ = std::filesystem::file_size(path_, error);
  if (error) fail(error.message());
  stream_.open(path_, std::ios::binary);
  if (!stream_) fail(std::strerror(errno));
}

std::vector<std::byte> InputFile::first(std::uint64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(count, size_)));
  stream_.clear();
  stream_.seekg(0);
  stream_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (stream_.gcount() != static_cast<std::streamsize>(bytes.size()))
    fail("can't be read to its end");
  return bytes;
}

void InputFile::fail(const std::string& problem) const {
  throw std::runtime_error(what_ + " " + path_ + ": " + problem);
}

}  // namespace quire::story
