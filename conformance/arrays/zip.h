// Zip archives as .npz files use them: members stored or deflated, in memory.
#pragma once

#include "bytes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::arrays {

/// One member, its place checked to lie inside the archive and apart from all other members.
struct ZipMember {
  std::string name;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;
};

/// The members by the central directory (zip64 too), in its order. Raises invalid_argument (`file`)
/// for what is no archive, is damaged, spans disks, is encrypted, names a member twice, or has a
/// member whose size deflate cannot give. Source: APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.
std::vector<ZipMember> read_zip_directory(Bytes archive);

/// A member's bytes, checked against its CRC. Owns the bytes where they had to be decompressed.
class ZipContent {
 public:
  /// Raises invalid_argument (`file`) where the data are damaged, where the size exceeds
  /// allowed_bytes(), and for deflated members in a build without zlib.
  ZipContent(Bytes archive, const ZipMember& member);
  Bytes bytes() const { return bytes_; }

 private:
  Tensor memory_;
  Bytes bytes_;
};

/// Whether sizes are written with 64 bits.
enum class Zip64 { where_needed, always };

/// A member to write: its bytes are the head's and then the body's.
struct ZipInput {
  std::string name;
  std::vector<std::byte> head;
  Bytes body;
};

/// An archive of stored members, the same bytes for the same input (all dated 1980-01-01). Raises
/// invalid_argument (`key`) for a name that is too long.
std::vector<std::byte> write_zip(std::span<const ZipInput> members,
                                 Zip64 zip64 = Zip64::where_needed);

/// CRC-32 as zip has it; `before` is that of the bytes in front.
std::uint32_t crc32(Bytes bytes, std::uint32_t before = 0);

}  // namespace quire::arrays
