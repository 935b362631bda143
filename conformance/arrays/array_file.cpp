// Array files on disk: read and written by their extension.
#include "array_file.h"

#include "bytes.h"
#include "npy.h"
#include "npz.h"
#include "safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace quire::arrays {

namespace {

enum class Format { npy, npz, safetensors };

Format format_of(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".npy") return Format::npy;
  if (extension == ".npz") return Format::npz;
  if (extension == ".safetensors") return Format::safetensors;
  reject("file", shown(path.string()), "names that end in .npy, .npz or .safetensors");
}

[[noreturn]] void reject_system(const std::filesystem::path& path, std::string_view failed,
                                int error) {
  reject("file",
         fmt::format("{} {} ({})", shown(path.string()), failed,
                     std::generic_category().message(error)),
         "a file that can be read or written there");
}

std::vector<std::string> names_in(Format format, Bytes bytes) {
  switch (format) {
    case Format::npy: return {};
    case Format::npz: return npz_names(bytes);
    case Format::safetensors: return safetensors_names(bytes);
  }
  return {};
}

// Runs `action` and puts the file's name into what it raises.
template <typename Action>
auto naming(const std::filesystem::path& path, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    const std::string prefix = error.argument() + ": ";
    std::string_view message = error.what();
    if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
    throw Error(error.code(), error.argument(),
                fmt::format("{}{}: {}", prefix, shown(path.string()), message));
  }
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

Tensor read_whole(const std::filesystem::path& path) {
  // Without blocking: a pipe is then found to be no file instead of waiting for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (file.number() < 0 || ::fstat(file.number(), &facts) != 0)
    reject_system(path, "can't be opened", errno);
  if (!S_ISREG(facts.st_mode))
    reject("file", shown(path.string()) + " that is no regular file", "a file");
  const Shape size = {static_cast<std::int64_t>(facts.st_size)};
  Tensor content = naming(path, [&] { return Tensor::empty(DType::u8, size, "file"); });
  std::int64_t at = 0;
  while (at < facts.st_size) {
    const ssize_t count =
        ::read(file.number(), content.raw() + at, static_cast<std::size_t>(facts.st_size - at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) reject_system(path, "can't be read", errno);
    if (count == 0)
      reject("file", shown(path.string()) + " that shrank while it was read",
             "a file that stays as it is");
    at += count;
  }
  return content;
}

void write_whole(const std::filesystem::path& path, const std::filesystem::path& temporary,
                 Bytes bytes) {
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0) reject_system(path, "can't be created", errno);
  const auto give_up = [&](std::string_view failed, int error) {
    ::unlink(temporary.c_str());
    reject_system(path, failed, error);
  };
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) give_up("can't be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  // Otherwise a machine that stops soon after could be left with the new name and no content.
  if (::fsync(file.number()) != 0 && errno != EINVAL && errno != EROFS)
    give_up("can't be written", errno);
  if (file.close() != 0) give_up("can't be written", errno);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) give_up("can't be put in place", errno);
}

}  // namespace

ArrayFile::ArrayFile(std::filesystem::path path) : path_(std::move(path)) {
  format_of(path_);
  content_ = read_whole(path_);
}

std::vector<std::string> ArrayFile::names() const {
  return naming(path_, [&] { return names_in(format_of(path_), bytes_of(content_)); });
}

Tensor ArrayFile::read(std::string_view key, std::optional<DType> as) const {
  const Format format = format_of(path_);
  return naming(path_, [&] {
    const Bytes bytes = bytes_of(content_);
    if (format == Format::npy) {
      if (!key.empty()) reject("key", shown(key), "no key, as an .npy file holds one array");
      return read_npy(bytes, as);
    }
    if (key.empty()) {
      const std::vector<std::string> known = names_in(format, bytes);
      reject("key", "none", known.empty() ? "none, as the file holds no arrays" : listed(known));
    }
    return format == Format::npz ? read_npz_entry(bytes, key, as)
                                 : read_safetensors_entry(bytes, key, as);
  });
}

Tensor load(const std::filesystem::path& path, std::string_view key, std::optional<DType> as) {
  return ArrayFile(path).read(key, as);
}

void save(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors) {
  const Format format = format_of(path);
  const std::vector<std::byte> bytes = naming(path, [&] {
    if (format == Format::npz) return write_npz(tensors);
    if (format == Format::safetensors) return write_safetensors(tensors);
    if (tensors.size() != 1)
      reject("file", fmt::format("{} tensors for an .npy file", tensors.size()), "exactly one");
    return write_npy(tensors.begin()->second);
  });
  static std::atomic<unsigned> serial{0};
  std::filesystem::path temporary = path;
  temporary.replace_filename(fmt::format(".quire-{}-{}.tmp", ::getpid(), serial++));
  write_whole(path, temporary, bytes);
}

}  // namespace quire::arrays
