// Plugins at run time: where they are looked for, what becomes of bad ones, and that a good one is used.
#include "discovery.h"
#include "findings.h"
#include "table_check.h"

#include "core_test_helpers.h"

#include <quire/registry.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

using namespace quire;
using namespace quire::test;
namespace fs = std::filesystem;

namespace {

const std::string fakes = QUIRE_FAKES;

PluginPlaces only(const std::vector<std::string>& kinds) {
  PluginPlaces places = plugin_places();
  places.folders.clear();
  places.taken_names = {"reference"};
  for (const std::string& kind : kinds) places.folders.push_back({kind.front() == '/' ? kind : fakes + "/" + kind, "the test", "", 0});
  return places;
}

BackendStatus tried(const std::string& kind) {
  const Discovery found = discover(only({kind}));
  REQUIRE(found.plugins.size() == 1);
  return found.plugins.front();
}

// A folder that is gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "quire_loading_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Expected {
  std::string kind;
  PluginFault fault;
  std::string reason;  // a part of it
};

detail::Variables from(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found != values.end() ? std::optional<std::string>(found->second) : std::nullopt;
  };
}

}  // namespace

TEST_CASE("loading: a good plugin is found, described and used") {
  const BackendStatus good = tried("good");
  CAPTURE(good.reason);
  REQUIRE(good.available);
  CHECK(good.name == "good");
  CHECK(good.fault == PluginFault::none);
  CHECK(good.reason.empty());
  CHECK(good.path == fakes + "/good/quire_good.so");
  CHECK(good.version == "1.2.3");
  CHECK(good.description == "a fake: copies positions");
  CHECK(good.driver == "fake driver 7.8");
  CHECK(good.build == QUIRE_BUILD_DEBUG);
  CHECK(good.rank == 5);
  CHECK(good.abi_version == QUIRE_ABI_VERSION);
  CHECK(good.semantics_version == QUIRE_SEMANTICS_VERSION);
  REQUIRE(good.devices.size() == 1);
  CHECK(good.devices[0].name == "a pretended device");
  CHECK(good.devices[0].memory_bytes == 3 << 20);
  REQUIRE(good.backend != nullptr);
  CHECK(good.backend->path() == good.path);
  const Tensor answer = positions(Index::whole(2, 3), {good.backend, nullptr});
  CHECK(bytes(answer) == bytes(i64({0, 1, 2, 0, 1, 2}, {2, 3})));
  CHECK(caught([&] { (void)mask(Index::whole(1, 1), {good.backend, nullptr}); }).code == ErrorCode::unsupported);
}

TEST_CASE("loading: every bad plugin is a status with its own reason, and the good ones beside it are used") {
  const std::vector<Expected> all = {
      {"not_a_library", PluginFault::not_a_library, "not an ELF file: it begins with"},
      {"empty", PluginFault::not_a_library, "it is empty"},
      {"cut", PluginFault::not_a_library, "a cut or damaged ELF file"},
      {"cut_header", PluginFault::not_a_library, "a cut or damaged ELF file: it ends at 40 bytes"},
      {"object", PluginFault::not_a_library, "not a shared library"},
      {"other_machine", PluginFault::other_machine, "; this process is "},
      {"narrow", PluginFault::other_machine, "built for 32-bit machines"},
      {"missing_dependency", PluginFault::missing_dependency, "it needs libquire_gone.so, which can't be found"},
      {"unresolved", PluginFault::unresolved_symbol, ", which nothing that it needs defines"},
      {"no_query", PluginFault::no_query, "it exports no quire_backend_query"},
      {"too_new", PluginFault::refused, "newer version of the ABI (this library speaks version "},
      {"too_new_careless", PluginFault::version, "too new: it speaks version "},
      {"other_laws", PluginFault::semantics, "it computes version 2 of the laws; this library has version 1"},
      {"refusing", PluginFault::refused, "the fake is out of order today"},
      {"refusing_silently", PluginFault::refused, "it hands out no table and gives no reason"},
      {"short_table", PluginFault::bad_table, "launch, step_free lie beyond it"},
      {"null_entry", PluginFault::bad_table, "its table has no supports, no contract"},
      {"throws_in_query", PluginFault::threw, "it threw across the C ABI: thrown in the query"},
      {"throws_in_describe", PluginFault::threw, "it threw across the C ABI"},
      {"aborts", PluginFault::crashed, "it crashed when probed (quire_backend_query): SIGABRT (Aborted); it said: the fake can not go on"},
      {"crashes_at_load", PluginFault::crashed, "it crashed when probed (loading): SIGSEGV (Segmentation fault)"},
      {"exits_at_load", PluginFault::crashed, "it ended the process when probed (loading): exit status 3"},
      {"exits_well", PluginFault::crashed, "it ended the process when probed (device_count): exit status 0"},
      {"bad_name", PluginFault::bad_answer, "its name is \"Bad Name\n\"; allowed: 1 to 32 of a-z, 0-9, - and _"},
      {"no_name", PluginFault::bad_answer, "describe gives no name"},
      {"unknown_dtype", PluginFault::bad_answer, "dtypes is 0x10000000000; allowed: bits 0 to 11"},
      {"writes_beyond", PluginFault::bad_answer, "beyond the struct_size"},
      {"silent_failure", PluginFault::bad_answer, "last_error null"},
      {"no_driver", PluginFault::unavailable, "no fake driver is installed (error 35)"},
      {"no_device", PluginFault::no_device, "no device"},
      {"impostor", PluginFault::name_taken, "its name, reference, is a built-in backend's"},
      {"good", PluginFault::none, ""},
      {"good_again", PluginFault::name_taken, "its name, good, is taken by " + fakes + "/good/quire_good.so"},
      {"higher", PluginFault::none, ""},
      {"negative", PluginFault::none, ""},
      {"noisy", PluginFault::none, ""}};
  std::vector<std::string> kinds;
  for (const Expected& expected : all) kinds.push_back(expected.kind);
  const Discovery found = discover(only(kinds));
  REQUIRE(found.plugins.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const BackendStatus& status = found.plugins[i];
    CAPTURE(all[i].kind);
    CAPTURE(status.reason);
    CHECK(found.places.folders[i].candidates == 1);
    CHECK(std::string(name(status.fault)) == std::string(name(all[i].fault)));
    CHECK(contains(status.reason, all[i].reason));
    CHECK(status.available == (all[i].fault == PluginFault::none));
    CHECK(status.reason.empty() == status.available);
    CHECK((status.backend != nullptr) == status.available);
    CHECK(status.path == fakes + "/" + all[i].kind + "/quire_" + all[i].kind + ".so");
    if (status.available) CHECK(bytes(positions(Index::whole(1, 2), {status.backend, nullptr})) == bytes(i64({0, 1}, {1, 2})));
  }
  const auto status = [&](const std::string& kind) -> const BackendStatus& {
    return *std::find_if(found.plugins.begin(), found.plugins.end(), [&](const BackendStatus& s) { return contains(s.path, "/" + kind + "/"); });
  };
  CHECK(status("missing_dependency").missing == std::vector<std::string>{"libquire_gone.so"});
  std::vector<std::string> unresolved = status("unresolved").unresolved;
  std::sort(unresolved.begin(), unresolved.end());
  CHECK(unresolved == std::vector<std::string>{"fake_nowhere_one", "fake_nowhere_two"});
  CHECK(status("too_new_careless").abi_version == QUIRE_ABI_VERSION + 1);
  CHECK(status("other_laws").semantics_version == QUIRE_SEMANTICS_VERSION + 1);
  CHECK(status("no_driver").driver == "fake driver 7.8");  // told though there is no device
  CHECK(status("aborts").name == "aborts");                // by its file's name, since it never said
  CHECK(status("impostor").name == "reference");
}

TEST_CASE("loading: a plugin that is too old, by a range that begins later") {
  PluginPlaces places = only({"too_old", "too_old_careless"});
  places.versions = {1, 3};
  const Discovery found = discover(places);
  REQUIRE(found.plugins.size() == 2);
  CHECK(found.plugins[0].fault == PluginFault::refused);
  CHECK(found.plugins[0].reason == "the fake speaks an older version of the ABI (this library speaks versions 1 to 3 of the ABI)");
  CHECK(found.plugins[1].fault == PluginFault::version);
  CHECK(found.plugins[1].reason == "too old: it speaks version 0 of the ABI; this library speaks versions 1 to 3");
  CHECK(found.plugins[1].asked.least == 1);
}

TEST_CASE("loading: a plugin that hangs is given up in time, with all that it started") {
  const Folder folder;
  const std::string file = folder / "child";
  const Environment told("FAKE_CHILD_FILE", file.c_str());
  PluginPlaces places = only({"hangs"});
  places.probe_seconds = 1.5;
  const auto begin = std::chrono::steady_clock::now();
  const Discovery found = discover(places);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  REQUIRE(found.plugins.size() == 1);
  CHECK(found.plugins[0].fault == PluginFault::hung);
  CHECK(found.plugins[0].reason == "it did not answer within 1.5 s (quire_backend_query)");
  CHECK(seconds >= 1.5);
  CHECK(seconds < 20);
  pid_t child = 0;
  std::ifstream(file) >> child;
  REQUIRE(child > 0);
  // Gone, or a zombie that waits for this machine's first process.
  std::string state;
  for (int turn = 0; turn < 200; ++turn) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string number, command;
    state.clear();
    stat >> number >> command >> state;
    if (state.empty() || state == "Z" || state == "X") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK_MESSAGE((state.empty() || state == "Z" || state == "X"), state);
}

TEST_CASE("loading: without quire-probe nothing is loaded, and that is the reason") {
  PluginPlaces places = only({"good", "crashes_at_load", "not_a_library"});
  places.helpers = {"/nowhere/quire-probe", fakes + "/good/quire_good.so.not"};
  Discovery found = discover(places);
  REQUIRE(found.plugins.size() == 3);
  CHECK(found.helper.empty());
  for (const BackendStatus& status : found.plugins) {
    CHECK(status.fault == PluginFault::no_helper);
    CHECK(status.reason == "not probed: quire-probe is neither /nowhere/quire-probe nor " + fakes + "/good/quire_good.so.not");
    CHECK(status.backend == nullptr);
  }
  // One that can't be started, and one that answers nothing.
  const Folder folder;
  std::ofstream(folder / "quire-probe") << "no program";
  ::chmod((folder / "quire-probe").c_str(), 0755);
  places.helpers = {folder / "quire-probe"};
  found = discover(places);
  CHECK(found.plugins[0].fault == PluginFault::no_helper);
  CHECK(contains(found.plugins[0].reason, "can't be started to try it: Exec format error"));
  places.helpers = {"/bin/true"};
  found = discover(places);
  CHECK(found.plugins[0].fault == PluginFault::crashed);
  CHECK_FALSE(found.plugins[0].available);
}

TEST_CASE("loading: candidates are the regular files that end in .so, by name; folders are searched once") {
  const Folder folder;
  const std::string good = fakes + "/good/quire_good.so";
  fs::copy_file(fakes + "/higher/quire_higher.so", folder / "b.so");
  fs::copy_file(good, folder / "a.so");
  fs::copy_file(good, folder / "good.so.1");
  fs::copy_file(good, folder / "good.txt");
  fs::create_directory(folder / "folder.so");
  fs::create_symlink("/nowhere", folder / "broken.so");
  ::mkfifo((folder / "pipe.so").c_str(), 0600);
  fs::create_directory_symlink(folder.path(), folder / "again");
  PluginPlaces places = only({folder.path(), folder / "again", "/nowhere/at/all", folder / "a.so"});
  const Discovery found = discover(places);
  REQUIRE(found.plugins.size() == 2);
  CHECK(found.plugins[0].path == folder / "a.so");
  CHECK(found.plugins[0].available);
  CHECK(found.plugins[1].path == folder / "b.so");
  CHECK(found.plugins[1].available);
  CHECK(found.places.folders[0].candidates == 2);
  CHECK(found.places.folders[1].not_searched == "searched already");
  CHECK(found.places.folders[2].not_searched == "not there");
  CHECK_FALSE(found.places.folders[3].not_searched.empty());
}

TEST_CASE("loading: places are the library's own and QUIRE_BACKEND_PATH's, never the working directory") {
  const PluginPlaces places = detail::places_of("/opt/q/lib/libquire.so", from({{"QUIRE_BACKEND_PATH", "/a::b/c:/d e:."}, {"QUIRE_PROBE_SECONDS", "0.5"}}), false);
  REQUIRE(places.folders.size() == 6);
  CHECK(places.folders[0].path == "/opt/q/lib/quire/backends");
  CHECK(places.folders[0].not_searched.empty());
  CHECK(places.folders[1].path == "/a");
  CHECK(places.folders[1].not_searched.empty());
  CHECK(places.folders[2].path.empty());
  CHECK(contains(places.folders[2].not_searched, "empty"));
  CHECK(places.folders[3].path == "b/c");
  CHECK(contains(places.folders[3].not_searched, "relative"));
  CHECK(places.folders[4].path == "/d e");
  CHECK(places.folders[5].path == ".");
  CHECK(contains(places.folders[5].not_searched, "relative"));
  CHECK(places.probe_seconds == 0.5);
  CHECK(places.ignored.empty());
  CHECK(places.versions.least == QUIRE_ABI_VERSION_MIN);
  CHECK(places.versions.most == QUIRE_ABI_VERSION);
  REQUIRE(places.helpers.size() == 2);
  CHECK(places.helpers[0].starts_with("/opt/q/"));
  CHECK(places.helpers[0].ends_with("/quire/quire-probe"));
  CHECK(places.helpers[1] == "/opt/q/bin/quire-probe");
  // Linked statically, the program stands for the library.
  const PluginPlaces program = detail::places_of("/opt/q/bin/quire", from({}), false);
  CHECK(program.folders[0].path.starts_with("/opt/q/lib"));
  CHECK(program.folders[0].path.ends_with("/quire/backends"));
  CHECK(program.helpers[0] == places.helpers[0]);
  CHECK(program.helpers[1] == places.helpers[1]);
  CHECK(program.probe_seconds == 10);
  CHECK(detail::places_of("", from({{"QUIRE_BACKEND_PATH", ""}}), false).folders.empty());
}

TEST_CASE("loading: a process with raised privileges heeds no variable and says which") {
  const detail::Variables variables = from({{"QUIRE_BACKEND_PATH", "/a"}, {"QUIRE_PROBE_SECONDS", "nonsense"}, {"QUIRE_BACKEND", "good"}});
  const PluginPlaces places = detail::places_of("/opt/q/lib/libquire.so", variables, true);
  REQUIRE(places.folders.size() == 1);
  CHECK(places.folders[0].path == "/opt/q/lib/quire/backends");
  CHECK(places.probe_seconds == 10);
  std::vector<std::string> ignored = places.ignored;
  std::sort(ignored.begin(), ignored.end());
  CHECK(ignored == std::vector<std::string>{"QUIRE_BACKEND", "QUIRE_BACKEND_PATH", "QUIRE_PROBE_SECONDS"});
  CHECK_FALSE(detail::has_raised_privileges());  // the tests' own process
}

TEST_CASE("loading: QUIRE_PROBE_SECONDS is a number of seconds") {
  for (const char* bad : {"0", "-1", "nan", "inf", "3601", "ten", "1s", " "}) {
    CAPTURE(bad);
    check_rejected([&] { (void)detail::places_of("/l/l.so", from({{"QUIRE_PROBE_SECONDS", bad}}), false); }, "QUIRE_PROBE_SECONDS", bad, "3600");
  }
  CHECK(detail::places_of("/l/l.so", from({{"QUIRE_PROBE_SECONDS", ""}}), false).probe_seconds == 10);
  CHECK(detail::places_of("/l/l.so", from({{"QUIRE_PROBE_SECONDS", "3600"}}), false).probe_seconds == 3600);
}

TEST_CASE("loading: the library knows its own file, absolutely, whatever the working directory") {
  const std::string file = detail::own_file();
  REQUIRE(fs::path(file).is_absolute());
  CHECK(fs::is_regular_file(file));
  const std::string helper = discover(only({})).helper;
  CHECK(helper.ends_with("/bin/quire-probe"));
}

TEST_CASE("loading: a host that ignores the ends of its children still hears its probes") {
  struct sigaction ignore {}, before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, &before);
  const Discovery found = discover(only({"good", "aborts", "no_device"}));
  ::sigaction(SIGCHLD, &before, nullptr);
  REQUIRE(found.plugins.size() == 3);
  CHECK(found.plugins[0].available);
  CHECK(found.plugins[1].fault == PluginFault::crashed);
  CHECK(found.plugins[1].reason == "it ended the process when probed (quire_backend_query); it said: the fake can not go on");
  CHECK(found.plugins[2].fault == PluginFault::no_device);
}

TEST_CASE("loading: no process, descriptor or pipe is left over") {
  const auto open_descriptors = [] {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) count += entry.path().empty() ? 0 : 1;
    return count;
  };
  (void)discover(only({"good"}));
  const std::size_t before = open_descriptors();
  (void)discover(only({"good", "aborts", "noisy", "exits_at_load", "not_a_library"}));
  CHECK(open_descriptors() == before);
}

TEST_CASE("loading: a search from several threads at once finds the same") {
  std::vector<std::thread> threads;
  std::vector<const Discovery*> found(4, nullptr);
  for (std::size_t i = 0; i < found.size(); ++i) threads.emplace_back([&, i] { found[i] = &discovery(); });
  for (std::thread& thread : threads) thread.join();
  for (const Discovery* one : found) CHECK(one == found.front());
}

TEST_CASE("findings: what is written is read, and what is no finding is passed over") {
  BackendStatus told;
  told.name = "x";
  told.reason = "two\nlines \\ and \x01";
  told.fault = PluginFault::unavailable;
  told.version = "1 2";
  told.driver = "d";
  told.abi_version = 7;
  told.semantics_version = 8;
  told.build = 9;
  told.rank = -3;
  told.missing = {"a b", "c"};
  told.unresolved = {"f"};
  told.devices = {{10, 2, "a device\n", 1234567890123}};
  BackendStatus heard;
  const detail::ReadFindings found = detail::read_findings("stage loading\n" + detail::write_findings(told) + "name late\n", heard);
  CHECK(found.complete);
  CHECK(found.stage == "loading");
  CHECK(heard.name == told.name);
  CHECK(heard.reason == told.reason);
  CHECK(heard.fault == told.fault);
  CHECK(heard.version == told.version);
  CHECK(heard.driver == told.driver);
  CHECK(heard.abi_version == told.abi_version);
  CHECK(heard.semantics_version == told.semantics_version);
  CHECK(heard.build == told.build);
  CHECK(heard.rank == told.rank);
  CHECK(heard.missing == told.missing);
  CHECK(heard.unresolved == told.unresolved);
  REQUIRE(heard.devices.size() == 1);
  CHECK(heard.devices[0].name == "a device\n");
  CHECK(heard.devices[0].type == 10);
  CHECK(heard.devices[0].memory_bytes == 1234567890123);
  BackendStatus untouched;
  CHECK_FALSE(detail::read_findings("\n\nnonsense\nrank many\ndevice 1 x 3 name\nabi -1\nfault no such\nend", untouched).complete);
  CHECK(untouched.rank == 0);
  CHECK(untouched.devices.empty());
  CHECK_FALSE(untouched.abi_version);
  CHECK(untouched.fault == PluginFault::none);
}

TEST_CASE("a table is checked entry by entry, a description field by field") {
  const quire_backend_table whole = backend("reference").table();
  CHECK(detail::table_fault(whole).empty());
  // Every entry in turn: each is a pointer, from describe on.
  constexpr std::size_t first = offsetof(quire_backend_table, describe), step = sizeof(void (*)());
  std::set<std::string> named;
  for (std::size_t at = first; at < sizeof whole; at += step) {
    quire_backend_table holed = whole;
    std::memset(reinterpret_cast<char*>(&holed) + at, 0, step);
    named.insert(detail::table_fault(holed));
    quire_backend_table cut = whole;
    cut.struct_size = at;
    CHECK(contains(detail::table_fault(cut), "lie beyond it"));
  }
  CHECK(named.size() == (sizeof whole - first) / step);
  CHECK(named.count("") == 0);
  CHECK(named.count("its table has no event_wait") == 1);
  quire_backend_table larger = whole;
  larger.struct_size = sizeof whole + 64;  // a newer plugin's
  CHECK(detail::table_fault(larger).empty());

  for (const char* good : {"a", "cuda", "my-own_2", "0123456789012345678901234567890_"}) CHECK(detail::is_backend_name(good));
  for (const char* bad : {"", "A", "a b", "a/b", "\xc3\xa4", "01234567890123456789012345678901x"}) CHECK_FALSE(detail::is_backend_name(bad));

  quire_device_info device{sizeof device, {1, 0}, "d", 0, 1};
  CHECK(detail::device_fault(device).empty());
  device.memory_bytes = -1;
  CHECK(contains(detail::device_fault(device), "-1 bytes"));
  device = {sizeof device, {0, 0}, "d", 0, 1};
  CHECK(contains(detail::device_fault(device), "type 0"));
  device = {sizeof device, {1, -1}, "d", 0, 1};
  CHECK(contains(detail::device_fault(device), "number -1"));
  device = {sizeof device, {1, 0}, nullptr, 0, 1};
  CHECK(contains(detail::device_fault(device), "no name"));
  device = {sizeof device, {1, 0}, "d", 0, 2};
  CHECK(contains(detail::device_fault(device), "reads_host 2"));
}
