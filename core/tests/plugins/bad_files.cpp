// bad_files GOOD FOLDER: writes plugins that are no libraries, each in a folder of its own.
#include <elf.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

void write(const std::filesystem::path& folder, const std::string& kind, const std::string& bytes) {
  std::filesystem::create_directories(folder / kind);
  std::ofstream(folder / kind / ("quire_" + kind + ".so"), std::ios::binary) << bytes;
}

void set_machine(std::string& file, Elf64_Half machine) { std::memcpy(&file[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof machine); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream from(argv[1], std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(from), {}};
  if (good.size() < sizeof(Elf64_Ehdr)) return 2;
  const std::filesystem::path folder = argv[2];
  write(folder, "not_a_library", "#!/bin/sh\necho not a library\n");
  write(folder, "empty", "");
  write(folder, "cut", good.substr(0, good.size() / 2));
  write(folder, "cut_header", good.substr(0, 40));
  std::string other = good;
#if defined(__aarch64__)
  set_machine(other, EM_X86_64);
#else
  set_machine(other, EM_AARCH64);
#endif
  write(folder, "other_machine", other);
  std::string narrow = good;
  narrow[EI_CLASS] = ELFCLASS32;
  write(folder, "narrow", narrow);
  std::string object = good;
  const Elf64_Half type = ET_REL;
  std::memcpy(&object[offsetof(Elf64_Ehdr, e_type)], &type, sizeof type);
  write(folder, "object", object);
  return 0;
}
