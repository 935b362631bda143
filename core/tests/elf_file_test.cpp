// The reader of shared libraries' files: what it says of good ones, cut ones, and ones with any byte changed.
#include "elf_file.h"

#include "core_test_helpers.h"

#include <elf.h>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace quire;
using namespace quire::test;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes fake(const std::string& kind) {
  std::ifstream from(std::string(QUIRE_FAKES) + "/" + kind + "/quire_" + kind + ".so", std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

bool has(const std::vector<std::string>& names, const std::string& name) { return std::count(names.begin(), names.end(), name) == 1; }

}  // namespace

TEST_CASE("elf: what a library needs and what it leaves undefined") {
  const detail::ElfFacts good = detail::read_elf(fake("good"));
  CHECK(good.fault == PluginFault::none);
  CHECK(good.reason.empty());
  CHECK(has(good.needed, "libc.so.6"));
  CHECK_FALSE(has(good.undefined, "quire_backend_query"));
  const detail::ElfFacts missing = detail::read_elf(fake("missing_dependency"));
  CHECK(has(missing.needed, "libquire_gone.so"));
  CHECK(has(missing.undefined, "fake_gone"));
  CHECK(missing.run_path.empty());
  const detail::ElfFacts unresolved = detail::read_elf(fake("unresolved"));
  CHECK(has(unresolved.undefined, "fake_nowhere_one"));
  CHECK(has(unresolved.undefined, "fake_nowhere_two"));
  CHECK_FALSE(has(unresolved.undefined, "__gmon_start__"));  // weak
}

TEST_CASE("elf: what is no library says what it is") {
  const auto reason = [](const std::string& kind) { return detail::read_elf(fake(kind)).reason; };
  CHECK(contains(reason("not_a_library"), "begins with \"#!/bin/sh"));
  CHECK(contains(reason("empty"), "it is empty"));
  CHECK(contains(reason("cut_header"), "ends at 40 bytes"));
  CHECK(contains(reason("cut"), "a cut or damaged ELF file"));
  CHECK(contains(reason("narrow"), "built for 32-bit machines; this process is 64-bit"));
  CHECK(contains(reason("object"), "type 1, not a shared library"));
#if defined(__x86_64__)
  CHECK(reason("other_machine") == "built for aarch64; this process is x86-64");
#endif
  Bytes swapped = fake("good");
  swapped.at(EI_DATA) = swapped.at(EI_DATA) == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
  CHECK(contains(detail::read_elf(swapped).reason, "byte order"));
}

TEST_CASE("elf: a file cut anywhere is no library, and no byte of another value is read beyond the end") {
  const Bytes good = fake("good");
  REQUIRE(good.size() > 4096);
  for (std::size_t size = 0; size < good.size(); size += size < 2048 ? 1 : 97) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));  // its own memory: a sanitizer sees its end
    CAPTURE(size);
    CHECK(detail::read_elf(cut).fault == PluginFault::not_a_library);
  }
  std::size_t changed = 0;
  for (std::uint64_t turn = 0; turn < 3000; ++turn) {
    Bytes hostile = good;
    // The header, the segments and the dynamic section decide where is read; most changes are there.
    const std::size_t range = turn % 4 != 0 ? 1024 : hostile.size();
    for (std::uint64_t i = 0; i < 1 + turn % 3; ++i) {
      hostile[mixed(turn * 8 + i) % range] = turn % 2 == 0 ? 0xFF : static_cast<unsigned char>(mixed(turn * 8 + i + 4));
    }
    const detail::ElfFacts facts = detail::read_elf(hostile);
    CHECK((facts.fault == PluginFault::none) == facts.reason.empty());
    if (facts.fault != PluginFault::none || facts.needed != detail::read_elf(good).needed) ++changed;
  }
  CHECK(changed > 100);
}
