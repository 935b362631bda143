// Loads a plugin and asks it all that the library goes by.
#include "probe.h"

#include "dependencies.h"
#include "elf_file.h"
#include "table_check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>

namespace quire {

namespace {

using detail::ElfFacts;

std::string text_of(const char* text) {
  constexpr std::size_t longest = 4096;
  return text == nullptr ? std::string() : std::string(text, ::strnlen(text, longest));
}

// What lies behind a struct that a plugin fills: it knows the struct's size and has no business there.
template <typename Info>
struct Guarded {
  Guarded() {
    std::memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    guard.fill(0xA5);
  }
  bool intact() const {
    for (const unsigned char byte : guard) {
      if (byte != 0xA5) return false;
    }
    return true;
  }
  Info info;
  std::array<unsigned char, 256> guard;
};

class Probe {
 public:
  Probe(const std::string& path, const VersionRange& versions, const std::function<void(std::string_view)>& begin)
      : path_(path), versions_(versions), begin_(begin) {}

  BackendStatus run() {
    if (read_file() && load() && query() && describe()) devices();
    return std::move(status_);
  }

 private:
  bool fail(PluginFault fault, std::string reason) {
    status_.fault = fault;
    status_.reason = std::move(reason);
    return false;
  }

  bool read_file() {
    begin_("reading the file");
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts {};
    if (file < 0 || ::fstat(file, &facts) != 0) return fail(PluginFault::unreadable, fmt::format("it can't be read: {}", std::strerror(errno)));
    if (!S_ISREG(facts.st_mode)) return fail(PluginFault::unreadable, "it can't be read: no regular file");
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* bytes = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) return fail(PluginFault::unreadable, fmt::format("it can't be read: {}", std::strerror(errno)));
    facts_ = detail::read_elf({static_cast<const unsigned char*>(bytes), size});
    if (bytes != nullptr) ::munmap(bytes, size);
    ::close(file);
    return facts_.fault == PluginFault::none || fail(facts_.fault, facts_.reason);
  }

  bool load() {
    begin_("loading");
    ::dlerror();
    library_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return true;
    const char* words = ::dlerror();
    const std::string said = text_of(words);
    begin_("loading what it needs");
    explain_refusal(path_, facts_, said, status_);
    return false;
  }

  bool query() {
    const auto function = reinterpret_cast<quire_backend_query_fn>(::dlsym(library_, QUIRE_BACKEND_QUERY_SYMBOL));
    if (function == nullptr) return fail(PluginFault::no_query, "no backend plugin: it exports no " QUIRE_BACKEND_QUERY_SYMBOL);
    begin_(QUIRE_BACKEND_QUERY_SYMBOL);
    const quire_host host{sizeof host, QUIRE_ABI_VERSION, QUIRE_VERSION};
    const char* reason = nullptr;
    if (!guarded([&] { table_ = function(&host, versions_.least, versions_.most, &reason); })) return false;
    if (table_ == nullptr) {
      return fail(PluginFault::refused, fmt::format("{} (this library speaks {} of the ABI)",
                                                    reason != nullptr && *reason != '\0' ? text_of(reason) : "it hands out no table and gives no reason",
                                                    detail::words_of(versions_)));
    }
    if (table_->struct_size >= offsetof(quire_backend_table, describe)) {
      status_.abi_version = table_->abi_version;
      status_.semantics_version = table_->semantics_version;
      // First: a table of another version may be of another size.
      if (std::string fault = detail::version_fault(*table_, versions_); !fault.empty()) return fail(PluginFault::version, std::move(fault));
    }
    if (std::string fault = detail::table_fault(*table_); !fault.empty()) return fail(PluginFault::bad_table, std::move(fault));
    if (std::string fault = detail::semantics_fault(*table_); !fault.empty()) return fail(PluginFault::semantics, std::move(fault));
    return true;
  }

  bool describe() {
    begin_("describe");
    Guarded<quire_backend_info> guarded_info;
    quire_backend_info& info = guarded_info.info;
    quire_status answer = QUIRE_OK;
    if (!guarded([&] { answer = table_->describe(&info); })) return false;
    if (answer != QUIRE_OK) return refused("describe", answer);
    if (!guarded_info.intact()) return fail(PluginFault::bad_answer, "describe writes beyond the struct_size that it was given");
    if (std::string fault = detail::info_fault(info); !fault.empty()) return fail(PluginFault::bad_answer, std::move(fault));
    status_.name = info.name;
    status_.version = text_of(info.version);
    status_.description = text_of(info.description);
    status_.driver = text_of(info.driver);
    status_.build = info.build;
    status_.rank = info.rank;
    return true;
  }

  bool devices() {
    begin_("device_count");
    std::int32_t count = -1;
    quire_status answer = QUIRE_OK;
    if (!guarded([&] { answer = table_->device_count(&count); })) return false;
    if (answer != QUIRE_OK) return refused("device_count", answer);
    if (count < 0 || count > detail::most_devices) {
      return fail(PluginFault::bad_answer, fmt::format("device_count answers {}; allowed: 0 to {}", count, detail::most_devices));
    }
    if (count == 0) return fail(PluginFault::no_device, "no device");
    for (std::int32_t i = 0; i < count; ++i) {
      begin_("device_info");
      Guarded<quire_device_info> guarded_info;
      quire_device_info& info = guarded_info.info;
      if (!guarded([&] { answer = table_->device_info(i, &info); })) return false;
      if (answer != QUIRE_OK) return refused("device_info", answer);
      if (!guarded_info.intact()) return fail(PluginFault::bad_answer, "device_info writes beyond the struct_size that it was given");
      if (std::string fault = detail::device_fault(info); !fault.empty()) return fail(PluginFault::bad_answer, std::move(fault));
      status_.devices.push_back({info.device.type, info.device.id, text_of(info.name), info.memory_bytes});
    }
    return true;
  }

  // A status that is no success, with the plugin's own words.
  bool refused(std::string_view what, quire_status answer) {
    const char* said = nullptr;
    if (!guarded([&] { said = table_->last_error(); })) return false;
    if (said == nullptr) return fail(PluginFault::bad_answer, fmt::format("{} answers status {} and last_error null; allowed: a text", what, answer));
    const std::string words = *said != '\0' ? text_of(said) : "it gives no reason";
    if (what != "describe" && answer == QUIRE_UNAVAILABLE) return fail(PluginFault::unavailable, words);
    return fail(PluginFault::bad_answer, fmt::format("{} answers status {}: {}", what, answer, words));
  }

  template <typename Call>
  bool guarded(const Call& call) {
    try {
      call();
      return true;
    } catch (const std::exception& error) {
      return fail(PluginFault::threw, fmt::format("it threw across the C ABI: {}", error.what()));
    } catch (...) {
      return fail(PluginFault::threw, "it threw across the C ABI");
    }
  }

  std::string path_;
  VersionRange versions_;
  const std::function<void(std::string_view)>& begin_;
  BackendStatus status_;
  ElfFacts facts_;
  void* library_ = nullptr;
  const quire_backend_table* table_ = nullptr;
};

}  // namespace

BackendStatus probe(const std::string& path, const VersionRange& versions, const std::function<void(std::string_view)>& begin) {
  return Probe(path, versions, begin).run();
}

}  // namespace quire
