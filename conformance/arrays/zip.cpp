// Zip archives: their directory, and the bytes of a member.
#include "zip.h"

#include "zip_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#ifdef QUIRE_HAVE_ZLIB
#include <zlib.h>
#endif

namespace quire::arrays {

using namespace zip_layout;

namespace {

[[noreturn]] void reject_zip(std::string_view given,
                             std::string_view allowed = "a whole zip archive") {
  reject("file", given, allowed);
}

// Raises unless [offset, offset + size) lies in the archive.
void require_inside(Bytes archive, std::uint64_t offset, std::uint64_t size,
                    std::string_view what) {
  if (offset > archive.size() || size > archive.size() - offset) {
    reject_zip(
        fmt::format("a zip archive of {} bytes whose {} lies outside", archive.size(), what));
  }
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t members = 0;
};

// The end record stands last, behind it only a comment of the length it says.
std::uint64_t find_end(Bytes archive) {
  if (archive.size() >= end_size) {
    const std::uint64_t last = archive.size() - end_size;
    const std::uint64_t first = last > 0xffff ? last - 0xffff : 0;
    for (std::uint64_t at = last + 1; at-- > first;) {
      if (number_at<std::uint32_t>(archive, at) == end_signature &&
          number_at<std::uint16_t>(archive, at + 20) == last - at)
        return at;
    }
  }
  reject_zip(fmt::format("{} bytes without a zip archive's end record", archive.size()));
}

Directory find_directory(Bytes archive) {
  const std::uint64_t end = find_end(archive);
  const auto disk = number_at<std::uint16_t>(archive, end + 4);
  const auto first_disk = number_at<std::uint16_t>(archive, end + 6);
  const auto members_here = number_at<std::uint16_t>(archive, end + 8);
  Directory directory{number_at<std::uint32_t>(archive, end + 16),
                      number_at<std::uint32_t>(archive, end + 12),
                      number_at<std::uint16_t>(archive, end + 10)};
  bool is_split = (disk != 0 && disk != big16) || (first_disk != 0 && first_disk != big16) ||
                  members_here != directory.members;
  std::uint64_t directory_end = end;

  const bool has_locator =
      end >= locator_size &&
      number_at<std::uint32_t>(archive, end - locator_size) == locator_signature;
  if (has_locator) {
    const std::uint64_t locator = end - locator_size;
    const auto end64 = number_at<std::uint64_t>(archive, locator + 8);
    require_inside(archive.first(locator), end64, end64_size, "zip64 end record");
    if (number_at<std::uint32_t>(archive, end64) != end64_signature)
      reject_zip("a zip archive without its zip64 end record");
    is_split |= number_at<std::uint32_t>(archive, locator + 4) != 0 ||
                number_at<std::uint32_t>(archive, locator + 16) > 1 ||
                number_at<std::uint32_t>(archive, end64 + 16) != 0 ||
                number_at<std::uint32_t>(archive, end64 + 20) != 0 ||
                number_at<std::uint64_t>(archive, end64 + 24) !=
                    number_at<std::uint64_t>(archive, end64 + 32);
    directory = {number_at<std::uint64_t>(archive, end64 + 48),
                 number_at<std::uint64_t>(archive, end64 + 40),
                 number_at<std::uint64_t>(archive, end64 + 32)};
    directory_end = end64;
  } else if (disk == big16 || first_disk == big16) {
    is_split = true;
  }
  if (is_split) reject_zip("a zip archive over several disks", "one file");
  require_inside(archive, directory.offset, directory.size, "directory");
  if (directory.offset + directory.size != directory_end) {
    reject_zip(fmt::format("a zip archive whose directory ends at byte {}",
                           directory.offset + directory.size),
               fmt::format("an end at byte {}, where its end record begins", directory_end));
  }
  if (directory.members > directory.size / central_size) {
    reject_zip(fmt::format("a zip directory of {} bytes for {} members", directory.size,
                           directory.members),
               fmt::format("at least {} bytes for each", central_size));
  }
  return directory;
}

// The 64-bit values of a member, which stand in its extra field for each of the three that is at
// its 32-bit limit, in this order (APPNOTE 4.5.3).
void apply_zip64(Bytes extra, ZipMember& member) {
  const std::array<std::uint64_t*, 3> fields = {&member.size, &member.stored_size,
                                                &member.header_offset};
  if (std::none_of(fields.begin(), fields.end(),
                   [](const std::uint64_t* field) { return *field == big32; }))
    return;
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0);
    const auto size = number_at<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) break;
    if (id != zip64_extra) {
      extra = extra.subspan(4u + size);
      continue;
    }
    Bytes values = extra.subspan(4, size);
    for (std::uint64_t* field : fields) {
      if (*field != big32) continue;
      if (values.size() < 8) reject_zip("a zip64 field that is too short");
      *field = number_at<std::uint64_t>(values, 0);
      values = values.subspan(8);
    }
    return;
  }
  // Without the field the values are meant as they are.
}

// The entry at `at` of the directory; `at` moves behind it.
ZipMember read_central(Bytes archive, std::uint64_t& at, std::uint64_t directory_end) {
  const Bytes before_end = archive.first(directory_end);
  require_inside(before_end, at, central_size, "directory entry");
  if (number_at<std::uint32_t>(archive, at) != central_signature)
    reject_zip(fmt::format("no zip directory entry at byte {}", at));
  const auto flags = number_at<std::uint16_t>(archive, at + 8);
  const std::uint64_t name_size = number_at<std::uint16_t>(archive, at + 28);
  const std::uint64_t extra_size = number_at<std::uint16_t>(archive, at + 30);
  const std::uint64_t comment_size = number_at<std::uint16_t>(archive, at + 32);
  require_inside(before_end, at + central_size, name_size + extra_size + comment_size,
                 "directory entry");

  ZipMember member;
  member.name = text_of(archive.subspan(at + central_size, name_size));
  member.method = number_at<std::uint16_t>(archive, at + 10);
  member.crc = number_at<std::uint32_t>(archive, at + 16);
  member.stored_size = number_at<std::uint32_t>(archive, at + 20);
  member.size = number_at<std::uint32_t>(archive, at + 24);
  member.header_offset = number_at<std::uint32_t>(archive, at + 42);
  const auto disk = number_at<std::uint16_t>(archive, at + 34);
  apply_zip64(archive.subspan(at + central_size + name_size, extra_size), member);

  const std::string name = shown(member.name);
  if ((flags & flags_encrypted) != 0)
    reject_zip(fmt::format("the encrypted zip member {}", name), "members without encryption");
  if (disk != 0 && disk != big16)
    reject_zip(fmt::format("the zip member {} on another disk", name), "one file");
  if (member.method != method_stored && member.method != method_deflated) {
    reject_zip(fmt::format("the zip member {} with compression method {}", name, member.method),
               "0 (stored) and 8 (deflate)");
  }
  // Deflate gives at most 258 bytes for 2 bits, so a larger size lies.
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / deflate_ratio;
  const bool is_plausible =
      member.method == method_stored
          ? member.size == member.stored_size
          : member.stored_size < most && member.size <= member.stored_size * deflate_ratio;
  if (!is_plausible) {
    reject_zip(
        fmt::format("the zip member {} of {} bytes in {}", name, member.size, member.stored_size),
        "sizes that agree");
  }
  at += central_size + name_size + extra_size + comment_size;
  return member;
}

// Finds the data behind the member's own header, which repeats the name and the method.
void locate(Bytes archive, ZipMember& member, std::uint64_t directory_offset) {
  const Bytes before = archive.first(directory_offset);
  const std::uint64_t at = member.header_offset;
  const std::string what = "member " + shown(member.name);
  require_inside(before, at, local_size, what);
  if (number_at<std::uint32_t>(archive, at) != local_signature)
    reject_zip(fmt::format("no header of the zip {} at byte {}", what, at));
  const std::uint64_t name_size = number_at<std::uint16_t>(archive, at + 26);
  const std::uint64_t extra_size = number_at<std::uint16_t>(archive, at + 28);
  require_inside(before, at + local_size, name_size + extra_size, what);
  if (text_of(archive.subspan(at + local_size, name_size)) != member.name ||
      number_at<std::uint16_t>(archive, at + 8) != member.method ||
      (number_at<std::uint16_t>(archive, at + 6) & flags_encrypted) != 0) {
    reject_zip(fmt::format("a zip {} whose own header differs from the directory", what));
  }
  member.data_offset = at + local_size + name_size + extra_size;
  require_inside(before, member.data_offset, member.stored_size, what);
}

// Members that share bytes would let a small archive hold any number of large arrays.
void require_apart(const std::vector<ZipMember>& members) {
  std::vector<const ZipMember*> ordered;
  for (const ZipMember& member : members) ordered.push_back(&member);
  std::sort(ordered.begin(), ordered.end(), [](const ZipMember* a, const ZipMember* b) {
    return a->header_offset < b->header_offset;
  });
  for (std::size_t i = 1; i < ordered.size(); ++i) {
    if (ordered[i - 1]->data_offset + ordered[i - 1]->stored_size > ordered[i]->header_offset) {
      reject_zip(fmt::format("the zip members {} and {} in the same bytes",
                             shown(ordered[i - 1]->name), shown(ordered[i]->name)),
                 "members apart");
    }
  }
}

#ifdef QUIRE_HAVE_ZLIB
// Whether `stored` is one raw deflate stream of exactly the target's size.
bool inflate_whole(Bytes stored, std::span<std::byte> target) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    throw Error(ErrorCode::unavailable, "file", "file: no memory to decompress");
  constexpr std::size_t step = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::size_t taken = 0;
  std::size_t given = 0;
  int status = Z_OK;
  std::byte beyond{};  // stands in for the target where nothing more may come
  while (status == Z_OK) {
    const std::size_t in = std::min(step, stored.size() - taken);
    const std::size_t out = std::min(step, target.size() - given);
    // zlib's input is not written to; its type lacks the const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out > 0 ? target.data() + given : &beyond);
    stream.avail_out = out > 0 ? static_cast<uInt>(out) : 1;
    const uInt room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    if (out > 0) {
      given += room - stream.avail_out;
    } else if (stream.avail_out != room) {
      status = Z_DATA_ERROR;
    }
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && taken == stored.size() && given == target.size();
}
#endif

}  // namespace

std::vector<ZipMember> read_zip_directory(Bytes archive) {
  const Directory directory = find_directory(archive);
  const std::uint64_t end = directory.offset + directory.size;
  std::uint64_t at = directory.offset;
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    ZipMember member = read_central(archive, at, end);
    locate(archive, member, directory.offset);
    if (!names.insert(member.name).second)
      reject_zip("two zip members " + shown(member.name), "each name once");
    members.push_back(std::move(member));
  }
  if (at != end)
    reject_zip(
        fmt::format("{} bytes behind the zip directory's {} members", end - at, directory.members));
  require_apart(members);
  return members;
}

ZipContent::ZipContent(Bytes archive, const ZipMember& member) {
  const Bytes stored = archive.subspan(member.data_offset, member.stored_size);
  if (member.method == method_stored) {
    bytes_ = stored;
  } else {
#ifdef QUIRE_HAVE_ZLIB
    if (member.size > static_cast<std::uint64_t>(allowed_bytes())) {
      reject_zip(fmt::format("the zip member {} of {} bytes", shown(member.name), member.size),
                 fmt::format("at most {} bytes", allowed_bytes()));
    }
    memory_ = Tensor::empty(DType::u8, {static_cast<std::int64_t>(member.size)}, "file");
    bytes_ = bytes_of(memory_);
    if (!inflate_whole(stored, {memory_.raw(), bytes_.size()})) {
      reject_zip(fmt::format("damaged compressed data in the zip member {}", shown(member.name)),
                 fmt::format("deflate data of {} bytes", member.size));
    }
#else
    reject_zip(fmt::format("the compressed zip member {}", shown(member.name)),
               "stored members, as this build has no zlib");
#endif
  }
  const std::uint32_t crc = crc32(bytes_);
  if (crc != member.crc) {
    reject_zip(fmt::format("the zip member {} with CRC {:08x}", shown(member.name), crc),
               fmt::format("{:08x}, as the directory says", member.crc));
  }
}

}  // namespace quire::arrays
