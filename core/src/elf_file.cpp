// What a shared library's file says of itself before it is loaded.
#include "elf_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace quire::detail {

namespace {

// More of them is no library that anybody made.
constexpr std::size_t most_names = 65536;
constexpr std::size_t longest_name = 4096;

#if defined(__x86_64__)
constexpr std::uint16_t own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t own_machine = EM_AARCH64;
#else
constexpr std::uint16_t own_machine = EM_NONE;  // not known here: the loader will tell
#endif

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_386: return "x86";
    case EM_ARM: return "arm";
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_PPC64: return "ppc64";
    case EM_S390: return "s390";
    case EM_RISCV: return "riscv";
    case EM_MIPS: return "mips";
    default: return fmt::format("machine {}", machine);
  }
}

class File {
 public:
  explicit File(std::span<const unsigned char> bytes) : bytes_(bytes) {}
  bool holds(std::uint64_t offset, std::uint64_t size) const { return offset <= bytes_.size() && size <= bytes_.size() - offset; }
  template <typename T>
  std::optional<T> at(std::uint64_t offset) const {
    if (!holds(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  /// Element `i` of an array at `offset` whose elements lie `step` apart.
  template <typename T>
  std::optional<T> at(std::uint64_t offset, std::uint64_t i, std::uint64_t step) const {
    if (step != 0 && i > bytes_.size() / step) return std::nullopt;
    if (offset > bytes_.size()) return std::nullopt;
    return at<T>(offset + i * step);
  }
  /// The text that ends with a zero byte before `end`.
  std::optional<std::string> text(std::uint64_t offset, std::uint64_t end) const {
    end = std::min<std::uint64_t>(end, bytes_.size());
    if (offset >= end) return std::nullopt;
    const unsigned char* from = bytes_.data() + offset;
    const auto* zero = static_cast<const unsigned char*>(std::memchr(from, 0, std::min<std::uint64_t>(end - offset, longest_name)));
    if (zero == nullptr) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(from), static_cast<std::size_t>(zero - from));
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<const unsigned char> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const unsigned char> bytes) : file_(bytes), bytes_(bytes) {}

  ElfFacts read() {
    if (header() && segments() && dynamic()) symbols();
    return std::move(facts_);
  }

 private:
  bool fail(PluginFault fault, std::string reason) {
    facts_.fault = fault;
    facts_.reason = std::move(reason);
    return false;
  }
  bool cut(std::string_view what) {
    return fail(PluginFault::not_a_library, fmt::format("a cut or damaged ELF file: it ends at {} bytes, before its {}", file_.size(), what));
  }

  bool header() {
    if (bytes_.empty()) return fail(PluginFault::not_a_library, "not an ELF file: it is empty");
    if (bytes_.size() < SELFMAG || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0) {
      std::string start;
      for (const unsigned char c : bytes_.first(std::min<std::size_t>(bytes_.size(), 16))) start += c >= 0x20 && c < 0x7F ? static_cast<char>(c) : '.';
      return fail(PluginFault::not_a_library, fmt::format("not an ELF file: it begins with \"{}\"", start));
    }
    if (bytes_.size() < EI_NIDENT) return cut("header's end");
    if (bytes_[EI_CLASS] != ELFCLASS64) {
      return fail(PluginFault::other_machine, fmt::format("built for {}; this process is 64-bit", bytes_[EI_CLASS] == ELFCLASS32 ? "32-bit machines" : "no known word size"));
    }
    if (bytes_[EI_DATA] != (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB)) {
      return fail(PluginFault::other_machine, "built for the other byte order");
    }
    const auto read = file_.at<Elf64_Ehdr>(0);
    if (!read) return cut("header's end");
    header_ = *read;
    if (own_machine != EM_NONE && header_.e_machine != own_machine) {
      return fail(PluginFault::other_machine, fmt::format("built for {}; this process is {}", machine_name(header_.e_machine), machine_name(own_machine)));
    }
    if (header_.e_type != ET_DYN) {
      return fail(PluginFault::not_a_library, fmt::format("an ELF file of type {}, not a shared library", header_.e_type));
    }
    return true;
  }

  bool segments() {
    if (header_.e_phentsize < sizeof(Elf64_Phdr) || header_.e_phnum == 0) return fail(PluginFault::not_a_library, "an ELF file without segments");
    for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
      const auto segment = file_.at<Elf64_Phdr>(header_.e_phoff, i, header_.e_phentsize);
      if (!segment) return cut("list of segments");
      if ((segment->p_type == PT_LOAD || segment->p_type == PT_DYNAMIC) && !file_.holds(segment->p_offset, segment->p_filesz)) return cut("last segment's end");
      if (segment->p_type == PT_LOAD) loads_.push_back(*segment);
      if (segment->p_type == PT_DYNAMIC) dynamic_ = *segment;
    }
    // A file whose download broke off may hold all its segments.
    if (header_.e_shoff != 0 && !file_.holds(header_.e_shoff, std::uint64_t{header_.e_shnum} * header_.e_shentsize)) return cut("list of sections");
    if (!dynamic_) return fail(PluginFault::not_a_library, "an ELF file without a dynamic section: not a shared library");
    return true;
  }

  std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    for (const Elf64_Phdr& load : loads_) {
      if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz) return load.p_offset + (address - load.p_vaddr);
    }
    return std::nullopt;
  }

  // What it needs, by name.
  bool dynamic() {
    std::vector<std::uint64_t> needed;
    std::optional<std::uint64_t> run_path, old_path, strings_address;
    std::uint64_t strings_size = 0;
    for (std::uint64_t i = 0; i < dynamic_->p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = file_.at<Elf64_Dyn>(dynamic_->p_offset, i, sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) break;
      switch (entry->d_tag) {
        case DT_NEEDED: if (needed.size() < most_names) needed.push_back(entry->d_un.d_val); break;
        case DT_RUNPATH: run_path = entry->d_un.d_val; break;
        case DT_RPATH: old_path = entry->d_un.d_val; break;
        case DT_STRTAB: strings_address = entry->d_un.d_ptr; break;
        case DT_STRSZ: strings_size = entry->d_un.d_val; break;
        case DT_SYMTAB: symbols_ = offset_of(entry->d_un.d_ptr); break;
        case DT_HASH: hash_ = offset_of(entry->d_un.d_ptr); break;
        case DT_GNU_HASH: gnu_hash_ = offset_of(entry->d_un.d_ptr); break;
        default: break;
      }
    }
    const auto strings = strings_address ? offset_of(*strings_address) : std::nullopt;
    if (!strings || !file_.holds(*strings, strings_size)) return fail(PluginFault::not_a_library, "a damaged ELF file: its names lie outside it");
    strings_ = *strings;
    strings_end_ = *strings + strings_size;
    for (const std::uint64_t at : needed) {
      const auto name = name_at(at);
      if (!name) return fail(PluginFault::not_a_library, "a damaged ELF file: the name of a library that it needs lies outside it");
      facts_.needed.push_back(*name);
    }
    if (run_path || old_path) facts_.run_path = name_at(run_path ? *run_path : *old_path).value_or("");
    return true;
  }

  std::optional<std::string> name_at(std::uint64_t at) const {
    if (at >= strings_end_ - strings_) return std::nullopt;
    return file_.text(strings_ + at, strings_end_);
  }

  // How many dynamic symbols there are: nowhere said plainly. The undefined ones stand before those that the GNU hash lists.
  std::uint64_t symbol_count() const {
    if (hash_) {
      if (const auto chains = file_.at<std::uint32_t>(*hash_ + 4)) return *chains;
    }
    for (std::uint64_t i = 0; header_.e_shoff != 0 && i < header_.e_shnum; ++i) {
      const auto section = file_.at<Elf64_Shdr>(header_.e_shoff, i, header_.e_shentsize);
      if (section && section->sh_type == SHT_DYNSYM) return section->sh_size / sizeof(Elf64_Sym);
    }
    if (gnu_hash_) {
      if (const auto first = file_.at<std::uint32_t>(*gnu_hash_ + 4)) return *first;
    }
    return 0;
  }

  void symbols() {
    if (!symbols_) return;
    const std::uint64_t count = symbol_count();
    for (std::uint64_t i = 1; i < count && facts_.undefined.size() < most_names; ++i) {
      const auto symbol = file_.at<Elf64_Sym>(*symbols_, i, sizeof(Elf64_Sym));
      if (!symbol) return;
      if (symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL) continue;
      if (auto name = name_at(symbol->st_name); name && !name->empty()) facts_.undefined.push_back(std::move(*name));
    }
  }

  File file_;
  std::span<const unsigned char> bytes_;
  ElfFacts facts_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> loads_;
  std::optional<Elf64_Phdr> dynamic_;
  std::uint64_t strings_ = 0, strings_end_ = 0;
  std::optional<std::uint64_t> symbols_, hash_, gnu_hash_;
};

}  // namespace

ElfFacts read_elf(std::span<const unsigned char> file) { return Reader(file).read(); }

}  // namespace quire::detail
