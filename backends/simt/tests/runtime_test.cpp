// The runtime on three virtual devices: memory, streams, events, graphs, late errors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "simt_test_helpers.h"

namespace quire::gpu {
namespace {

struct FillParameters {
  std::int32_t* to;
  std::int32_t value;
};
QUIRE_KERNEL(fill, FillParameters) { parameters.to[block() * threads() + thread()] = parameters.value; }
QUIRE_KERNEL(add, FillParameters) { parameters.to[block() * threads() + thread()] += parameters.value; }

struct MeetParameters {
  std::int32_t* mine;
  std::int32_t* others;
  std::int32_t* met;
};
// Says that it runs, and waits, at most 20 seconds, for another kernel that says so.
QUIRE_KERNEL(meet, MeetParameters) {
  if (thread() != 0) return;
  __atomic_store_n(parameters.mine, 1, __ATOMIC_RELEASE);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (__atomic_load_n(parameters.others, __ATOMIC_ACQUIRE) == 0) {
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::yield();
  }
  *parameters.met = 1;
}

// Waits, at most 20 seconds, for the host.
QUIRE_KERNEL(await_host, MeetParameters) {
  if (thread() != 0) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (__atomic_load_n(parameters.others, __ATOMIC_ACQUIRE) == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

QUIRE_KERNEL(faulty, FillParameters) {
  if (thread() == 0) barrier();
}

}  // namespace
}  // namespace quire::gpu

namespace quire::simt::test {
namespace {

namespace runtime = gpu::runtime;

// Before anything reads the environment; the kernels here have a block for each piece of work.
const bool three_devices = [] { return unsetenv("QUIRE_SIMT_GRID") == 0 && setenv("QUIRE_SIMT_DEVICES", "3", 1) == 0; }();

constexpr quire_device host{QUIRE_DEVICE_CPU, 0};
quire_device device(std::int32_t id) { return {QUIRE_DEVICE_EXTENSION, id}; }

struct Memory {
  Memory(std::int32_t on, std::size_t size) : id(on), bytes(size), data(runtime::allocate(on, nullptr, size)) {}
  ~Memory() { runtime::release(id, nullptr, data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::int32_t* numbers() const { return static_cast<std::int32_t*>(data); }
  std::vector<std::int32_t> read() const {
    std::vector<std::int32_t> result(bytes / 4);
    runtime::copy(nullptr, result.data(), host, data, device(id), bytes);
    return result;
  }
  std::int32_t id;
  std::size_t bytes;
  void* data;
};

struct Stream {
  explicit Stream(std::int32_t id) : stream(runtime::stream_create(id)) {}
  ~Stream() { runtime::stream_destroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator quire_stream*() const { return stream; }
  quire_stream* stream;
};

struct Event {
  explicit Event(std::int32_t id) : event(runtime::event_create(id)) {}
  ~Event() { runtime::event_destroy(event); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator quire_event*() const { return event; }
  quire_event* event;
};

void launch(quire_stream* stream, std::int32_t id, const Launch& what) { runtime::launch(id, stream, {&what, 1}); }
Launch filling(std::int32_t* to, std::int32_t value, std::int64_t blocks = 1) {
  return Launch::of(gpu::fill(), blocks, 64, 0, gpu::FillParameters{to, value});
}
Launch adding(std::int32_t* to, std::int32_t value) { return Launch::of(gpu::add(), 1, 64, 0, gpu::FillParameters{to, value}); }
Launch faulting() { return Launch::of(gpu::faulty(), 1, 64, 0, gpu::FillParameters{nullptr, 0}); }

/// A kernel that holds its stream until `open`, or for 20 seconds.
struct Gate {
  std::int32_t opened = 0;
  Launch wait() { return Launch::of(gpu::await_host(), 1, 64, 0, gpu::MeetParameters{nullptr, &opened, nullptr}); }
  void open() { __atomic_store_n(&opened, 1, __ATOMIC_RELEASE); }
};

std::vector<std::int32_t> all(std::int32_t value, std::size_t count = 64) { return std::vector<std::int32_t>(count, value); }

TEST_CASE("what the runtime says of itself") {
  REQUIRE(three_devices);
  CHECK(std::string(runtime::name()) == "simt");
  CHECK(runtime::driver() == nullptr);
  CHECK(runtime::rank() == -1);
  CHECK(runtime::device_type() == QUIRE_DEVICE_EXTENSION);
  CHECK(runtime::device_count() == 3);
  CHECK(has_in_order(runtime::description(), {"SIMT emulator", "warps of ", "threads in ", "worker", "3 devices"}));
  for (int id = 0; id < 3; ++id) {
    const runtime::DeviceLimits& limits = runtime::limits(id);
    CHECK(limits.name == fmt::format("SIMT emulator {}", id));
    CHECK(limits.warp_width == settings().warp_width);
    CHECK(limits.shared_bytes == 49152);
    CHECK(limits.blocks == settings().grid);
    CHECK(limits.memory_bytes > 0);
    CHECK(limits.reads_host);
  }
  CHECK(failure_of([] { runtime::limits(3); }) == "limits: device 3; allowed: 0 to 2");
  CHECK(failure_of([] { runtime::allocate(-1, nullptr, 4); }) == "allocate: device -1; allowed: 0 to 2");
  CHECK(failure_of([] { runtime::stream_create(7); }) == "stream: device 7; allowed: 0 to 2");
}

TEST_CASE("memory: alignment, poison, copies between devices and the host") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{262144}, std::size_t{1000001}}) {
    const Memory a(0, bytes);
    const Memory b(2, bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data) % 256 == 0);
    if (bytes > 0 && bytes < 262144) CHECK(static_cast<unsigned char*>(a.data)[bytes - 1] == 0xff);
    std::vector<unsigned char> in(bytes);
    for (std::size_t i = 0; i < bytes; ++i) in[i] = static_cast<unsigned char>(i * 7 + 3);
    std::vector<unsigned char> out(bytes);
    runtime::copy(nullptr, a.data, device(0), in.data(), host, bytes);
    runtime::copy(nullptr, b.data, device(2), a.data, device(0), bytes);
    runtime::copy(nullptr, out.data(), host, b.data, device(2), bytes);
    CHECK(in == out);
  }
}

TEST_CASE("memory: a sparse allocation costs what is touched") {
  // The thread sanitizer leaves a process little of its addresses.
  const std::size_t bytes = std::size_t{1} << (thread_sanitizer_build ? 36 : 42);
  const Memory memory(1, bytes);
  auto* const data = static_cast<unsigned char*>(memory.data);
  data[0] = 1;
  data[bytes - 1] = 2;
  unsigned char out = 0;
  runtime::copy(nullptr, &out, host, data + bytes - 1, device(1), 1);
  CHECK(out == 2);
  CHECK(failure_of([] { runtime::allocate(0, nullptr, SIZE_MAX); }) == "device 0: no memory for 18446744073709551615 bytes");
}

TEST_CASE("memory: copies name memory of their devices, or are refused") {
  const Memory a(0, 256);
  const Memory b(1, 256);
  const std::string at_a = fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(a.data));
  std::vector<unsigned char> mine(256);
  const auto refused = [&](void* to, quire_device to_device, const void* from, quire_device from_device, std::size_t bytes) {
    return failure_of([&] { runtime::copy(nullptr, to, to_device, from, from_device, bytes); });
  };
  CHECK(refused(a.data, device(1), mine.data(), host, 256) == "to: " + at_a + " is memory of device 0, not of device 1");
  CHECK(refused(mine.data(), host, a.data, device(1), 256) == "from: " + at_a + " is memory of device 0, not of device 1");
  CHECK(refused(a.data, device(0), mine.data(), host, 257) ==
        "to: 257 bytes at " + at_a + " reach past their allocation of 256 bytes at " + at_a);
  CHECK(refused(a.data, host, mine.data(), host, 256) == "to: " + at_a + " is not memory of the host but of device 0");
  CHECK(has_in_order(refused(mine.data(), device(0), a.data, device(0), 1), {"to: 0x", " is not memory of device 0"}));
  CHECK(refused(nullptr, device(0), mine.data(), host, 1) == "to: null with 1 bytes");
  CHECK(refused(a.data, device(3), mine.data(), host, 1) == "to: device 3; allowed: 0 to 2");
  CHECK(refused(a.data, {QUIRE_DEVICE_CUDA, 0}, mine.data(), host, 1) == "to: a device of type 2; allowed: 1 (the host), 12 (simt's)");
  CHECK(refused(nullptr, device(0), nullptr, host, 0) == "");
  CHECK(refused(static_cast<char*>(a.data) + 255, device(0), mine.data(), host, 1) == "");
}

TEST_CASE("memory: freed twice, on another device, in its middle") {
  void* const data = runtime::allocate(1, nullptr, 1000);
  const std::string at = fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(data));
  CHECK(failure_of([&] { runtime::release(0, nullptr, data); }) == "free: the allocation at " + at + " is of device 1, not of device 0");
  CHECK(has_in_order(failure_of([&] { runtime::release(1, nullptr, static_cast<char*>(data) + 256); }),
                     {"free: no allocation begins at 0x"}));
  runtime::release(1, nullptr, data);
  CHECK(failure_of([&] { runtime::release(1, nullptr, data); }) ==
        "free: no allocation begins at " + at + "; it was freed before, or never allocated");
  runtime::release(1, nullptr, nullptr);
  // In a stream's order: the second one is found out before the stream is there.
  Gate gate;
  const Stream stream(1);
  void* const late = runtime::allocate(1, stream, 64);
  const std::string late_at = fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(late));
  launch(stream, 1, gate.wait());
  runtime::release(1, stream, late);
  CHECK(failure_of([&] { runtime::release(1, stream, late); }) == "free: the allocation at " + late_at + " was freed before");
  unsigned char out = 0;
  CHECK(failure_of([&] { runtime::copy(stream, &out, host, late, device(1), 1); }) ==
        "from: " + late_at + " is in memory that was freed: 64 bytes at " + late_at + ", freed");
  gate.open();
  runtime::synchronize(stream);
}

TEST_CASE("memory freed in a stream's order is there until the stream passes") {
  const Memory out(0, 256);
  Gate gate;
  const Stream stream(0);
  void* const data = runtime::allocate(0, stream, 256);
  launch(stream, 0, gate.wait());
  launch(stream, 0, filling(static_cast<std::int32_t*>(data), 41));
  runtime::copy(stream, out.data, device(0), data, device(0), 256);
  runtime::release(0, stream, data);
  gate.open();
  runtime::synchronize(stream);
  CHECK(out.read() == all(41));
}

TEST_CASE("a stream's work is ordered, and the host does not wait for it") {
  const Memory memory(0, 256);
  std::vector<std::int32_t> seen(64, -7);
  Gate gate;
  const Stream stream(0);
  launch(stream, 0, gate.wait());
  launch(stream, 0, filling(memory.numbers(), 1));
  for (int i = 0; i < 20; ++i) launch(stream, 0, adding(memory.numbers(), i));
  runtime::copy(stream, seen.data(), host, memory.data, device(0), 256);
  launch(stream, 0, filling(memory.numbers(), 0));
  CHECK(memory.read() == all(-1));
  gate.open();
  runtime::synchronize(stream);
  CHECK(seen == all(191));
  CHECK(memory.read() == all(0));
}

TEST_CASE("two streams run beside each other, on one device and on two") {
  for (const std::int32_t other : {0, 2}) {
    std::int32_t here[2] = {};
    std::int32_t met[2] = {};
    const Stream first(0);
    const Stream second(other);
    launch(first, 0, Launch::of(gpu::meet(), 1, 64, 0, gpu::MeetParameters{&here[0], &here[1], &met[0]}));
    launch(second, other, Launch::of(gpu::meet(), 1, 64, 0, gpu::MeetParameters{&here[1], &here[0], &met[1]}));
    runtime::synchronize(first);
    runtime::synchronize(second);
    CHECK(met[0] == 1);
    CHECK(met[1] == 1);
  }
}

TEST_CASE("events order streams, across devices too") {
  const Memory memory(0, 256);
  Gate gate;
  const Stream writer(0);
  const Stream reader(1);
  const Event written(0);
  const Event read(1);
  std::vector<std::int32_t> seen(64);
  runtime::event_wait(written, reader);  // never recorded: for nothing
  runtime::event_synchronize(written);
  launch(writer, 0, gate.wait());
  launch(writer, 0, filling(memory.numbers(), 5));
  runtime::event_record(written, writer);
  runtime::event_wait(written, reader);
  runtime::copy(reader, seen.data(), host, memory.data, device(0), 256);
  runtime::event_record(read, reader);
  runtime::event_wait(read, writer);
  launch(writer, 0, filling(memory.numbers(), 6));
  CHECK(memory.read() == all(-1));
  gate.open();
  runtime::event_synchronize(read);
  CHECK(seen == all(5));
  runtime::synchronize(writer);
  CHECK(memory.read() == all(6));
  CHECK(failure_of([&] { runtime::event_record(read, writer); }) == "event: device 1, but the stream is of device 0");
  CHECK(failure_of([&] { runtime::event_synchronize(nullptr); }) == "event: null");
}

TEST_CASE("an event stands for its last record, and for what lay before it") {
  Gate first_gate;
  Gate second_gate;
  const Stream stream(0);
  const Event event(0);
  launch(stream, 0, first_gate.wait());
  runtime::event_record(event, stream);
  launch(stream, 0, second_gate.wait());
  first_gate.open();
  runtime::event_synchronize(event);  // does not wait for the second gate
  CHECK(second_gate.opened == 0);
  runtime::event_record(event, nullptr);  // of a null stream, whose work is done
  runtime::event_synchronize(event);
  runtime::event_record(event, stream);
  second_gate.open();
  runtime::event_wait(event, nullptr);
  runtime::synchronize(stream);
}

TEST_CASE("an event may be destroyed while a stream waits for it") {
  const Memory memory(0, 256);
  Gate gate;
  const Stream first(0);
  const Stream second(0);
  launch(first, 0, gate.wait());
  launch(first, 0, filling(memory.numbers(), 1));
  {
    const Event event(0);
    runtime::event_record(event, first);
    runtime::event_wait(event, second);
  }
  launch(second, 0, adding(memory.numbers(), 1));
  gate.open();
  runtime::synchronize(second);
  CHECK(memory.read() == all(2));
}

TEST_CASE("destroying a stream waits for its work") {
  const Memory memory(0, 256);
  Gate gate;
  quire_stream* const stream = runtime::stream_create(0);
  CHECK(runtime::device_of(stream) == 0);
  launch(stream, 0, gate.wait());
  launch(stream, 0, filling(memory.numbers(), 9));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  runtime::stream_destroy(stream);
  opener.join();
  CHECK(memory.read() == all(9));
}

TEST_CASE("a null stream's work is done when the call returns, and its faults are that call's") {
  const Memory memory(1, 256);
  launch(nullptr, 1, filling(memory.numbers(), 3));
  CHECK(memory.read() == all(3));
  CHECK(has_in_order(failure_of([] { launch(nullptr, 0, faulting()); }), {"kernel faulty, block 0: divergent barrier"}));
  runtime::synchronize(nullptr);
}

TEST_CASE("a late error is told once, where the stream or an event is waited for") {
  const auto fails = [](const auto& body) { return has_in_order(failure_of(body), {"kernel faulty, block 0: divergent barrier"}); };
  const Memory memory(0, 256);
  const Stream stream(0);
  const Event event(0);

  SUBCASE("synchronize") {
    launch(stream, 0, faulting());
    launch(stream, 0, faulting());
    CHECK(fails([&] { runtime::synchronize(stream); }));
    runtime::synchronize(stream);
  }
  SUBCASE("event_synchronize") {
    launch(stream, 0, faulting());
    runtime::event_record(event, stream);
    CHECK(fails([&] { runtime::event_synchronize(event); }));
    runtime::event_synchronize(event);
    runtime::synchronize(stream);
  }
  SUBCASE("an event before the fault does not tell it") {
    runtime::event_record(event, stream);
    launch(stream, 0, faulting());
    runtime::event_synchronize(event);
    CHECK(fails([&] { runtime::synchronize(stream); }));
  }
  SUBCASE("a stream that waited for the failed one tells it too, but one of them") {
    const Stream second(2);
    launch(stream, 0, faulting());
    runtime::event_record(event, stream);
    runtime::event_wait(event, second);
    CHECK(fails([&] { runtime::synchronize(second); }));
    runtime::synchronize(stream);
    runtime::synchronize(second);
  }
  SUBCASE("work after it is left out until it is told; memory is given back all the same") {
    void* const data = runtime::allocate(0, stream, 256);
    launch(stream, 0, filling(memory.numbers(), 1));
    launch(stream, 0, faulting());
    launch(stream, 0, filling(memory.numbers(), 2));
    runtime::release(0, stream, data);
    CHECK(fails([&] { runtime::synchronize(stream); }));
    CHECK(memory.read() == all(1));
    CHECK(failure_of([&] { runtime::release(0, nullptr, data); }) != "");
    launch(stream, 0, filling(memory.numbers(), 3));
    runtime::synchronize(stream);
    CHECK(memory.read() == all(3));
  }
  SUBCASE("with the stream it is gone") {
    {
      const Stream second(1);
      launch(second, 1, faulting());
    }
    runtime::synchronize(stream);
  }
}

TEST_CASE("a stream takes launches of its device") {
  const Stream stream(1);
  CHECK(failure_of([&] { launch(stream, 0, faulting()); }) == "launch: device 0, but the stream is of device 1");
  CHECK(failure_of([&] { runtime::allocate(0, stream, 4); }) == "allocate: device 0, but the stream is of device 1");
  CHECK(failure_of([&] { launch(stream, 1, filling(nullptr, 0, -1)); }) == "kernel fill: blocks: -1; allowed: 0 or more");
}

TEST_CASE("a graph is its launches, with the parameters of its last update") {
  const Memory a(0, 256);
  const Memory b(0, 256);
  const std::vector<Launch> first{filling(a.numbers(), 10), adding(a.numbers(), 1)};
  const std::vector<Launch> second{filling(b.numbers(), 20), adding(b.numbers(), 2)};
  runtime::Graph* const graph = runtime::graph_create(0, first);
  runtime::graph_launch(nullptr, graph);
  CHECK(a.read() == all(11));
  CHECK(b.read() == all(-1));
  Gate gate;
  const Stream stream(0);
  launch(stream, 0, gate.wait());
  launch(stream, 0, filling(a.numbers(), 0));
  runtime::graph_launch(stream, graph);  // keeps the parameters that it has now
  runtime::graph_update(graph, second);
  runtime::graph_launch(stream, graph);
  CHECK(failure_of([&] { runtime::graph_update(graph, std::span(first).first(1)); }) == "graph_update: other kernels than the graph's");
  const Stream elsewhere(1);
  CHECK(failure_of([&] { runtime::graph_launch(elsewhere, graph); }) == "graph: device 0, but the stream is of device 1");
  runtime::graph_destroy(graph);
  gate.open();
  runtime::synchronize(stream);
  CHECK(a.read() == all(11));
  CHECK(b.read() == all(22));
}

TEST_CASE("stress: threads with streams, events and memory of their own") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&wrong, caller] {
      const std::int32_t id = caller % 3;
      const Stream stream(id);
      const Stream second(id);
      const Event event(id);
      for (int round = 0; round < 25; ++round) {
        auto* const data = static_cast<std::int32_t*>(runtime::allocate(id, stream, 256 * 8));
        std::vector<std::int32_t> out(64 * 8);
        launch(stream, id, filling(data, round, 8));
        for (int i = 0; i < 4; ++i) launch(stream, id, adding(data, caller));
        runtime::event_record(event, stream);
        runtime::event_wait(event, second);
        runtime::copy(second, out.data(), host, data, device(id), 256 * 8);
        runtime::event_record(event, second);
        runtime::event_wait(event, stream);
        runtime::release(id, stream, data);
        runtime::event_synchronize(event);
        for (std::size_t i = 0; i < out.size(); ++i)
          if (out[i] != round + (i < 64 ? 4 * caller : 0)) ++wrong;
      }
      runtime::synchronize(stream);
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace quire::simt::test
