// Zip archives: writing members as they are.
#include "zip.h"
#include "zip_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace quire::arrays {

using namespace zip_layout;

namespace {

constexpr std::uint16_t version_plain = 20;
constexpr std::uint16_t version_zip64 = 45;
constexpr std::uint16_t first_day = 0x0021;  // 1980-01-01, the first day that DOS dates can say

class Writer {
 public:
  Writer(std::uint64_t size, Zip64 zip64)
      : bytes_(with_capacity(size)), always64_(zip64 == Zip64::always) {}

  void member(const ZipInput& input) {
    if (input.name.size() > 0xffff) {
      reject("key", fmt::format("a name of {} bytes", input.name.size()),
             "at most 65535 bytes with \".npy\" behind it");
    }
    const std::uint64_t size = input.head.size() + input.body.size();
    Entry entry{input.name, size, bytes_.size(), crc32(input.body, crc32(input.head)),
                always64_ || size >= big32};
    put32(local_signature);
    common(entry, entry.is_big);
    put16(entry.is_big ? 20 : 0);
    append_text(bytes_, entry.name);
    if (entry.is_big) {
      put16(zip64_extra);
      put16(16);
      put64(entry.size);
      put64(entry.size);
    }
    append_bytes(bytes_, input.head);
    append_bytes(bytes_, input.body);
    entries_.push_back(std::move(entry));
  }

  std::vector<std::byte> finish() {
    const std::uint64_t begin = bytes_.size();
    for (const Entry& entry : entries_) central(entry);
    end(begin, bytes_.size() - begin);
    return std::move(bytes_);
  }

 private:
  struct Entry {
    std::string name;
    std::uint64_t size;
    std::uint64_t offset;
    std::uint32_t crc;
    bool is_big;
  };

  void put16(std::uint64_t value) { append_number(bytes_, static_cast<std::uint16_t>(value)); }
  void put32(std::uint64_t value) { append_number(bytes_, static_cast<std::uint32_t>(value)); }
  void put64(std::uint64_t value) { append_number(bytes_, value); }

  // What the local header and the directory entry share: version needed ... name length.
  void common(const Entry& entry, bool needs_zip64) {
    const bool is_ascii = std::all_of(entry.name.begin(), entry.name.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    put16(needs_zip64 ? version_zip64 : version_plain);
    put16(is_ascii ? 0 : flag_utf8);
    put16(method_stored);
    put16(0);  // midnight
    put16(first_day);
    put32(entry.crc);
    put32(entry.is_big ? big32 : entry.size);
    put32(entry.is_big ? big32 : entry.size);
    put16(entry.name.size());
  }

  void central(const Entry& entry) {
    const bool is_far = always64_ || entry.offset >= big32;
    const std::uint64_t values = (entry.is_big ? 16u : 0u) + (is_far ? 8u : 0u);
    put32(central_signature);
    put16(version_zip64);
    common(entry, entry.is_big || is_far);
    put16(values > 0 ? values + 4 : 0);
    put16(0);  // comment
    put16(0);  // disk
    put16(0);  // internal attributes
    put32(0);  // external attributes
    put32(is_far ? big32 : entry.offset);
    append_text(bytes_, entry.name);
    if (values == 0) return;
    put16(zip64_extra);
    put16(values);
    if (entry.is_big) {
      put64(entry.size);
      put64(entry.size);
    }
    if (is_far) put64(entry.offset);
  }

  void end(std::uint64_t begin, std::uint64_t size) {
    const std::uint64_t count = entries_.size();
    const bool is_big = always64_ || begin >= big32 || size >= big32 || count >= big16;
    if (is_big) {
      const std::uint64_t end64 = bytes_.size();
      put32(end64_signature);
      put64(end64_size - 12);  // the bytes behind this field
      put16(version_zip64);
      put16(version_zip64);
      put32(0);
      put32(0);
      put64(count);
      put64(count);
      put64(size);
      put64(begin);
      put32(locator_signature);
      put32(0);
      put64(end64);
      put32(1);
    }
    put32(end_signature);
    put16(0);
    put16(0);
    put16(is_big ? big16 : count);
    put16(is_big ? big16 : count);
    put32(is_big ? big32 : size);
    put32(is_big ? big32 : begin);
    put16(0);
  }

  std::vector<std::byte> bytes_;
  std::vector<Entry> entries_;
  bool always64_;
};

}  // namespace

std::vector<std::byte> write_zip(std::span<const ZipInput> members, Zip64 zip64) {
  // At most 20 and 28 bytes of zip64 fields for each member.
  std::uint64_t size = end64_size + locator_size + end_size;
  for (const ZipInput& member : members) {
    size += local_size + central_size + 48 + 2 * member.name.size() + member.head.size() +
            member.body.size();
  }
  Writer writer(size, zip64);
  for (const ZipInput& member : members) writer.member(member);
  return writer.finish();
}

}  // namespace quire::arrays
