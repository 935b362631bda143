// Files of reports.
#include "report_file.h"

#include <fcntl.h>
#include <quire/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "terminal.h"

namespace quire::tools {

ReportFile::ReportFile(std::string option, std::filesystem::path path) : option_(std::move(option)), path_(std::move(path)) {
  if (path_.extension() != ".md" && path_.extension() != ".json")
    reject(option_, "\"" + path_.string() + "\"", "names that end in .md or .json");
  temporary_ = path_;
  temporary_ += fmt::format(".{}.tmp", ::getpid());
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) fail("can't be written", EISDIR);
  ::close(create());
  ::unlink(temporary_.c_str());
}

void ReportFile::fail(const std::string& what, int error) const {
  throw Error(ErrorCode::unavailable, option_,
              fmt::format("{}: \"{}\" {}: {}", option_, path_.string(), what, std::generic_category().message(error)));
}

int ReportFile::create() const {
  const int file = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail("can't be written", errno);
  return file;
}

void ReportFile::write(const std::string& text) const {
  const int file = create();
  int error = 0;
  for (std::size_t at = 0; at < text.size() && error == 0;) {
    const ssize_t count = ::write(file, text.data() + at, text.size() - at);
    if (count >= 0) at += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) error = errno;
  }
  // Otherwise a machine that stops soon after could be left with the new name and no content.
  if (error == 0 && ::fsync(file) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary_.c_str());
  fail("can't be written", error);
}

}  // namespace quire::tools
