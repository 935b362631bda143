// A backend with devices of its own for tests.
#include "device_backend.h"

#include <quire/host_backend.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace quire::test {

namespace {

struct Allocation {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes;
  std::int32_t device;
};
std::map<std::byte*, Allocation>& allocations() {
  static std::map<std::byte*, Allocation> all;
  return all;
}
const char* planted = nullptr;

using Work = std::function<quire_status()>;

struct DeferredEvent;
struct Item {
  Work work;
  DeferredEvent* records = nullptr;
};
struct DeferredStream {
  std::int32_t device = 0;
  std::vector<Item> queue;
  std::size_t done = 0;
};
// Stands behind the first `place` items of a stream.
struct DeferredEvent {
  DeferredStream* stream = nullptr;
  std::size_t place = 0;
};

DeferredStream& stream_of(quire_stream* stream) { return *reinterpret_cast<DeferredStream*>(stream); }
DeferredEvent& event_of(quire_event* event) { return *reinterpret_cast<DeferredEvent*>(event); }

quire_status run_until(DeferredStream& stream, std::size_t place) {
  while (stream.done < place) {
    const Work work = stream.queue[stream.done++].work;
    if (planted != nullptr) return host::fail(QUIRE_INTERNAL, std::exchange(planted, nullptr));
    if (const quire_status status = work(); status != QUIRE_OK) return status;
  }
  return QUIRE_OK;
}

quire_status enqueue(quire_stream* stream, Work work) {
  if (stream == nullptr) return work();
  stream_of(stream).queue.push_back({std::move(work)});
  return QUIRE_OK;
}

// Where the memory lies, -1 for the host's.
std::int32_t place_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (const auto& [begin, allocation] : allocations()) {
    if (at >= begin && at < begin + allocation.bytes) return allocation.device;
  }
  return -1;
}

quire_status allocate(quire_device device, quire_stream*, std::size_t bytes, void** data) {
  auto memory = std::make_unique<std::byte[]>(bytes + 1);
  std::memset(memory.get(), 0xEE, bytes + 1);
  *data = memory.get();
  auto* begin = memory.get();
  allocations().emplace(begin, Allocation{std::move(memory), bytes + 1, device.id});
  return QUIRE_OK;
}

quire_status release(quire_device, quire_stream* stream, void* data) {
  return enqueue(stream, [data]() -> quire_status {
    return allocations().erase(static_cast<std::byte*>(data)) == 1 ? QUIRE_OK : host::fail(QUIRE_INTERNAL, "data: not allocated here");
  });
}

quire_status copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device, std::size_t bytes) {
  return enqueue(stream, [=]() -> quire_status {
    const auto lies = [](const void* address, quire_device device) { return place_of(address) == (device.type == QUIRE_DEVICE_CPU ? -1 : device.id); };
    if (!lies(to, to_device) || !lies(from, from_device)) return host::fail(QUIRE_INTERNAL, "copy: memory of another device");
    std::memmove(to, from, bytes);
    return QUIRE_OK;
  });
}

// Computes by the reference, on one device.
quire_status compute(const Call& call) {
  Call on_host(call.op(), call.args());
  for (const CallTensor& entry : on_host.tensors()) {
    if (place_of(entry.tensor->data) != entry.tensor->device.id) return host::fail(QUIRE_INTERNAL, "run: " + std::string(entry.name) + " does not lie where it says");
    entry.tensor->device = {QUIRE_DEVICE_CPU, 0};
  }
  const quire_backend_table& reference = backend("reference").table();
  const quire_status status = reference.run(nullptr, call.op(), on_host.args(), nullptr, 0);
  return status == QUIRE_OK ? status : host::fail(status, reference.last_error());
}

quire_status supports(quire_op op, const void* args) {
  const Call call(op, args);
  for (const CallTensor& entry : call.tensors()) {
    if (entry.tensor->device.type != QUIRE_DEVICE_EXTENSION || entry.tensor->device.id != call.tensors()[0].tensor->device.id) {
      return host::fail(QUIRE_UNSUPPORTED, "tensors of one device of this backend");
    }
  }
  return QUIRE_OK;
}

quire_status run(quire_stream* stream, quire_op op, const void* args, void* workspace, std::size_t bytes) {
  if (bytes != 16 || place_of(workspace) != Call(op, args).tensors()[0].tensor->device.id) return host::fail(QUIRE_INTERNAL, "workspace: not what was asked for");
  const auto call = std::make_shared<Call>(op, args);
  return enqueue(stream, [call] { return compute(*call); });
}

quire_status launch(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, std::int32_t count) {
  // Pointers are taken now, the work is done later.
  std::vector<quire_tensor> copies;
  for (std::int32_t n = 0; n < count; ++n) copies.push_back(*tensors[n]);
  std::vector<std::vector<std::int64_t>> numbers;
  for (quire_tensor& tensor : copies) {
    numbers.emplace_back(tensor.shape, tensor.shape + tensor.rank);
    numbers.emplace_back(tensor.strides, tensor.strides + tensor.rank);
  }
  return enqueue(stream, [step, copies, numbers]() mutable {
    std::vector<const quire_tensor*> pointers;
    for (std::size_t n = 0; n < copies.size(); ++n) {
      copies[n].shape = numbers[2 * n].data();
      copies[n].strides = numbers[2 * n + 1].data();
      pointers.push_back(&copies[n]);
    }
    return host::launch(step, pointers.data(), static_cast<std::int32_t>(pointers.size()), [](quire_op op, const void* args) { return compute(Call(op, args)); });
  });
}

}  // namespace

std::size_t live_allocations() { return allocations().size(); }
void fail_next_work(const char* message) { planted = message; }

const Backend& device_backend() {
  static const quire_backend_table table = [] {
    quire_backend_table made = backend("reference").table();
    made.describe = [](quire_backend_info* info) {
      host::write_info<quire_backend_info>({sizeof *info, "deferred", "1", "for tests", ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}, -1, 0, nullptr}, info);
      return quire_status{QUIRE_OK};
    };
    made.device_count = [](std::int32_t* count) {
      *count = 2;
      return quire_status{QUIRE_OK};
    };
    made.device_info = [](std::int32_t ordinal, quire_device_info* info) {
      host::write_info<quire_device_info>({sizeof *info, {QUIRE_DEVICE_EXTENSION, ordinal}, "deferred", 0, 0}, info);
      return quire_status{QUIRE_OK};
    };
    made.last_error = host::last_error;
    made.allocate = allocate;
    made.free = release;
    made.copy = copy;
    made.stream_create = [](quire_device device, quire_stream** stream) {
      *stream = reinterpret_cast<quire_stream*>(new DeferredStream{device.id, {}, 0});
      return quire_status{QUIRE_OK};
    };
    made.synchronize = [](quire_stream* stream) { return stream == nullptr ? quire_status{QUIRE_OK} : run_until(stream_of(stream), stream_of(stream).queue.size()); };
    made.stream_destroy = [](quire_stream* stream) {
      const quire_status status = run_until(stream_of(stream), stream_of(stream).queue.size());
      delete &stream_of(stream);
      return status;
    };
    made.event_create = [](quire_device, quire_event** event) {
      *event = reinterpret_cast<quire_event*>(new DeferredEvent);
      return quire_status{QUIRE_OK};
    };
    made.event_destroy = [](quire_event* event) {
      delete &event_of(event);
      return quire_status{QUIRE_OK};
    };
    made.event_record = [](quire_event* event, quire_stream* stream) {
      event_of(event) = {&stream_of(stream), stream_of(stream).queue.size()};
      return quire_status{QUIRE_OK};
    };
    made.event_wait = [](quire_event* event, quire_stream* stream) {
      const DeferredEvent recorded = event_of(event);
      return recorded.stream == nullptr ? quire_status{QUIRE_OK} : enqueue(stream, [recorded] { return run_until(*recorded.stream, recorded.place); });
    };
    made.event_synchronize = [](quire_event* event) {
      return event_of(event).stream == nullptr ? quire_status{QUIRE_OK} : run_until(*event_of(event).stream, event_of(event).place);
    };
    made.supports = supports;
    made.workspace = [](quire_op, const void*, std::size_t* bytes) {
      *bytes = 16;
      return quire_status{QUIRE_OK};
    };
    made.run = run;
    made.capture = [](quire_device, const quire_call* calls, std::int32_t count, quire_step** step) { return host::capture(calls, count, step, supports); };
    made.launch = launch;
    made.step_free = host::step_free;
    return made;
  }();
  static const Backend made(&table, "(test)");
  return made;
}

}  // namespace quire::test
