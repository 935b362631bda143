// Tests of array files on disk, and of damaged and hostile ones: an Error or a tensor, nothing
// else.
#include "arrays/array_file.h"
#include "arrays/npy.h"
#include "arrays/npz.h"
#include "arrays/safetensors.h"
#include "arrays_helpers.h"
#include "arrays_samples.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace quire::arrays {

using namespace testing;

namespace {

using Reader = std::function<void(Bytes)>;

void read_npz_all(Bytes file) { read_npz(file, {{"h", DType::bf16}}); }

struct Sample {
  std::string_view hex;
  Reader read;
};

std::vector<Sample> all_samples() {
  const auto npy = [](std::optional<DType> as) { return [as](Bytes file) { read_npy(file, as); }; };
  const auto npz = [](Bytes file) { read_npz(file); };
  const auto safetensors = [](Bytes file) { read_safetensors(file); };
  return {{samples::npy_bool, npy({})},
          {samples::npy_f32_fortran, npy({})},
          {samples::npy_f64_big, npy({})},
          {samples::npy_i64_rank0, npy({})},
          {samples::npy_i8_v2, npy({})},
          {samples::npy_i32_v3, npy({})},
          {samples::npy_bf16, npy(DType::bf16)},
          {samples::npz_stored, npz},
          {samples::npz_bf16, read_npz_all},
#ifdef QUIRE_HAVE_ZLIB
          {samples::npz_deflated, npz},
          {samples::npz_streamed, npz},
#endif
          {samples::safetensors_mixed, safetensors},
          {samples::safetensors_metadata, safetensors}};
}

// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "quire-arrays-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                  std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

TEST_CASE("a file cut short at any byte is an Error") {
  for (const Sample& sample : all_samples()) {
    const Buffer file = from_hex(sample.hex);
    CHECK_NOTHROW(sample.read(file));
    for (std::size_t size = 0; size < file.size(); ++size) {
      // Memory of exactly this size, so that sanitizers see a byte read too far.
      const Buffer part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK_THROWS_AS(sample.read(part), Error);
    }
    Buffer longer = file;
    longer.push_back(std::byte{0});
    CHECK_THROWS_AS(sample.read(longer), Error);
  }
}

TEST_CASE("a file with any byte changed is an Error or a tensor") {
  for (const Sample& sample : all_samples()) {
    const Buffer file = from_hex(sample.hex);
    for (std::size_t at = 0; at < file.size(); ++at) {
      for (const int change : {0x01, 0x02, 0x08, 0x20, 0x80, 0xff}) {
        Buffer changed = file;
        changed[at] ^= static_cast<std::byte>(change);
        try {
          sample.read(changed);
        } catch (const Error& error) {
          // "key" where the name of an array that `as` names has changed.
          CHECK((error.argument() == "file" || error.argument() == "key"));
          CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
        }
      }
    }
  }
}

// Puts a number over the bytes at `offset`.
template <typename T>
Buffer with(Buffer file, std::size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof value);
  return file;
}

TEST_CASE("npz: what an archive may not be") {
  const Buffer file = write_npz({{"a", counting(DType::u8, {2})}, {"b", counting(DType::u8, {2})}});
  const std::size_t member = 30 + 5 + 130;  // header, name, array
  const std::size_t directory = 2 * member;
  const std::size_t second = directory + 51;  // its second entry
  const std::size_t end = directory + 2 * 51;
  CHECK(file.size() == end + 22);
  const auto rejected = [&](std::string_view part, const Buffer& changed) {
    raises("file", part, [&] { read_npz(changed); });
  };
  rejected("encrypted", with<std::uint16_t>(file, directory + 8, 1));
  rejected("encrypted", with<std::uint16_t>(file, directory + 8, 0x40));
  rejected("own header differs", with<std::uint16_t>(file, 6, 1));
  rejected("compression method 12", with<std::uint16_t>(file, directory + 10, 12));
  rejected("CRC", with<std::uint32_t>(file, directory + 16, 0));
  rejected("sizes that agree", with<std::uint32_t>(file, directory + 24, 131));
  rejected("several disks", with<std::uint16_t>(file, end + 4, 1));
  rejected("several disks", with<std::uint16_t>(file, end + 8, 1));
  rejected("another disk", with<std::uint16_t>(file, directory + 34, 1));
  rejected("two zip members \"a.npy\"",
           with<char>(with<char>(file, member + 30, 'a'), second + 46, 'a'));
  rejected("members named", with<char>(with<char>(file, 34, 'x'), directory + 50, 'x'));
  rejected("lies outside", with<std::uint32_t>(file, directory + 42, 0xfffffff0));
  rejected("no header of the zip member", with<std::uint32_t>(file, directory + 42, 4));
  rejected("lies outside", with<std::uint32_t>(file, end + 16, 0xfffffff0));
  rejected("directory ends at", with<std::uint32_t>(file, end + 12, 50));
  rejected("for 65535 members",
           with<std::uint16_t>(with<std::uint16_t>(file, end + 8, 0xffff), end + 10, 0xffff));
  rejected("behind the zip directory",
           with<std::uint16_t>(with<std::uint16_t>(file, end + 8, 1), end + 10, 1));
  rejected("end record", with<std::uint16_t>(file, end + 20, 1));

  // The second member in the first one's bytes.
  Buffer overlapping = with<std::uint32_t>(file, second + 42, 0);
  overlapping = with<char>(with<char>(overlapping, 30, 'b'), second + 46, 'b');
  raises("file", "own header differs", [&] { read_npz(overlapping); });
  // Through a member's data that hold a whole other member.
  Buffer inner = from_hex(
      "504b0304"
      "1400"
      "00*8,"
      "00*12,"
      "0500"
      "0000"
      "622e6e7079");
  Buffer outer = file;
  std::copy(inner.begin(), inner.end(), outer.begin() + 35 + 60);
  outer = with<std::uint32_t>(
      with<std::uint32_t>(with<std::uint32_t>(outer, second + 42, 35 + 60), second + 20, 5),
      second + 24, 5);
  rejected("in the same bytes", outer);
}

TEST_CASE("npz: a declared size is checked before memory is taken") {
  Buffer file = from_hex(samples::npz_deflated);
  const std::string text(text_of(file));
  const std::size_t directory = text.find("PK\x01\x02");
  raises("file", "sizes that agree",
         [&] { read_npz(with<std::uint32_t>(file, directory + 24, 0x7fffffff)); });
#ifdef QUIRE_HAVE_ZLIB
  raises("file", "damaged", [&] {
    read_npz(with<std::uint32_t>(file, directory + 24,
                                 number_at<std::uint32_t>(file, directory + 24) + 1));
  });
  raises("file", "damaged", [&] {
    read_npz(with<std::uint32_t>(file, directory + 24,
                                 number_at<std::uint32_t>(file, directory + 24) - 1));
  });
#endif
  ::setenv("QUIRE_MAX_MEMORY", "16", 1);
#ifdef QUIRE_HAVE_ZLIB
  raises("file", "at most 16 bytes", [&] { read_npz(file); });
#endif
  raises("file", "at most 16 bytes", [] { read_npy(from_hex(samples::npy_f32_fortran)); });
  raises("file", "at most 16 bytes", [] {
    read_safetensors(safetensors_of(R"({"a":{"dtype":"U8","shape":[17],"data_offsets":[0,17]}})",
                                    "12345678901234567"));
  });
  ::unsetenv("QUIRE_MAX_MEMORY");
}

TEST_CASE("files on disk, by their extension") {
  const Folder folder;
  const Tensor x = counting(DType::bf16, {2, 3});
  const Tensor y = counting(DType::i64, {});
  save(folder / "one.npy", {{"anything", x}});
  CHECK(same(load(folder / "one.npy", "", DType::bf16), x));
  raises("key", "no key", [&] { load(folder / "one.npy", "x", DType::bf16); });
  CHECK(ArrayFile(folder / "one.npy").names().empty());
  for (const char* name : {"two.npz", "two.safetensors"}) {
    const std::filesystem::path path = folder / name;
    save(path, {{"x", x}, {"y", y}});
    save(path, {{"x", x}, {"y", y}});  // over the file that is there
    CHECK(same(load(path, "x", DType::bf16), x));
    CHECK(same(load(path, "y"), y));
    CHECK(ArrayFile(path).names() == std::vector<std::string>{"x", "y"});
    raises("key", "allowed: \"x\", \"y\"", [&] { load(path, ""); });
    raises("key", "\"z\"; allowed: \"x\", \"y\"", [&] { load(path, "z"); });
    raises("key", name, [&] { load(path, "z"); });
    raises("file", "nothing is converted", [&] { load(path, "y", DType::i32); });
  }
  std::map<std::string, Tensor> many;
  for (int i = 0; i < 23; ++i) many.emplace("k" + std::to_string(i), y);
  save(folder / "many.npz", many);
  raises("key", " and 3 more", [&] { load(folder / "many.npz", "x"); });
  CHECK(folder.files() == 4);

  raises("file", "end in .npy, .npz or .safetensors", [&] { load(folder / "x.bin", ""); });
  raises("file", "end in .npy, .npz or .safetensors", [&] { save(folder / "x.NPY", {{"x", x}}); });
  raises("file", "No such file", [&] { load(folder / "none.npy", ""); });
  raises("file", "2 tensors for an .npy file", [&] {
    save(folder / "new.npy", {{"x", x}, {"y", y}});
  });
  raises("file", "0 tensors for an .npy file", [&] { save(folder / "new.npy", {}); });
  std::filesystem::create_directory(folder / "folder.npy");
  raises("file", "regular file", [&] { load(folder / "folder.npy", ""); });
  REQUIRE(::mkfifo((folder / "pipe.npy").c_str(), 0600) == 0);
  raises("file", "regular file", [&] { load(folder / "pipe.npy", ""); });
  ::setenv("QUIRE_MAX_MEMORY", "16", 1);
  raises("file", "at most 16 bytes", [&] { load(folder / "one.npy", "", DType::bf16); });
  ::unsetenv("QUIRE_MAX_MEMORY");
}

TEST_CASE("a file that can't be written leaves nothing behind") {
  const Folder folder;
  const Tensor x = counting(DType::u8, {20000});
  raises("file", "No such file", [&] { save(folder / "missing/x.npy", {{"x", x}}); });
  std::filesystem::create_directory(folder / "folder.npz");
  std::ofstream(folder / "folder.npz" / "full") << "x";
  raises("file", "put in place", [&] { save(folder / "folder.npz", {{"x", x}}); });
  CHECK(folder.files() == 1);

  // A limit on the size of files stands in for a full disk: the write fails halfway.
  save(folder / "old.npy", {{"x", counting(DType::u8, {3})}});
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  raises("file", "can't be written", [&] { save(folder / "old.npy", {{"x", x}}); });
  raises("file", "can't be written", [&] { save(folder / "new.safetensors", {{"x", x}}); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(folder.files() == 2);
  CHECK(same(load(folder / "old.npy", ""), counting(DType::u8, {3})));
}

}  // namespace

}  // namespace quire::arrays
