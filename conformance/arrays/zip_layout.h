// Signatures, sizes and limits of the records of a zip archive (APPNOTE.TXT, sections 4.3 to 4.5).
#pragma once

#include <cstdint>

namespace quire::arrays::zip_layout {

inline constexpr std::uint32_t local_signature = 0x04034b50;
inline constexpr std::uint32_t central_signature = 0x02014b50;
inline constexpr std::uint32_t end_signature = 0x06054b50;
inline constexpr std::uint32_t end64_signature = 0x06064b50;
inline constexpr std::uint32_t locator_signature = 0x07064b50;

// Bytes of each record without the names and extra fields behind it.
inline constexpr std::uint64_t local_size = 30;
inline constexpr std::uint64_t central_size = 46;
inline constexpr std::uint64_t end_size = 22;
inline constexpr std::uint64_t end64_size = 56;
inline constexpr std::uint64_t locator_size = 20;

// A field at its limit says that the value stands in a zip64 record.
inline constexpr std::uint16_t big16 = 0xffff;
inline constexpr std::uint32_t big32 = 0xffffffff;
inline constexpr std::uint16_t zip64_extra = 0x0001;

inline constexpr std::uint16_t method_stored = 0;
inline constexpr std::uint16_t method_deflated = 8;
inline constexpr std::uint64_t deflate_ratio = 1032;

// Encrypted, strongly encrypted, masked headers.
inline constexpr std::uint16_t flags_encrypted = 0x0001 | 0x0040 | 0x2000;
inline constexpr std::uint16_t flag_utf8 = 0x0800;

}  // namespace quire::arrays::zip_layout
