// A report's file: known to be writable before the work that fills it, and put in place whole.
#pragma once

#include <filesystem>
#include <string>

namespace quire::tools {

/// NAME.md or NAME.json. Until `write`, whatever has that name stays as it is.
class ReportFile {
 public:
  /// Raises invalid_argument (the option's name) for another ending, and unavailable where no file can be put there.
  ReportFile(std::string option, std::filesystem::path path);
  bool is_json() const { return path_.extension() == ".json"; }
  /// Writes a file beside it and renames that. Raises unavailable where that fails; then nothing is left behind.
  void write(const std::string& text) const;

 private:
  [[noreturn]] void fail(const std::string& what, int error) const;
  int create() const;

  std::string option_;
  std::filesystem::path path_, temporary_;
};

}  // namespace quire::tools
