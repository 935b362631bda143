// Files: bytes of a regular file, with its size known before anything is read or allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace quire::story {

/// A regular file opened for reading. Raises std::runtime_error, one line that names the file and
/// the reason.
class InputFile {
 public:
  /// `what` says what the file is for ("model"), `hint` what to do where there is none.
  InputFile(std::string path, std::string what, const std::string& hint);

  std::uint64_t size() const { return size_; }
  /// The file's first `count` bytes, or all of them where it is shorter.
  std::vector<std::byte> first(std::uint64_t count);
  /// "<what> <path>: <problem>", as an exception to throw.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  std::string path_;
  std::string what_;
  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

}  // namespace quire::story
