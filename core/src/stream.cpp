// Streams, events and memory of devices.
#include <quire/stream.h>

#include <fmt/format.h>

#include <algorithm>

namespace quire {

namespace {

void require_device(const Backend& backend, Device device, std::string_view argument) {
  const std::vector<quire_device_info> devices = backend.devices();
  std::string allowed;
  for (const quire_device_info& info : devices) {
    const Device has{info.device.type, info.device.id};
    if (has == device) return;
    allowed += (allowed.empty() ? "" : ", ") + to_string(has);
  }
  reject(argument, to_string(device), fmt::format("devices of backend {}: {}", backend.name(), allowed));
}

quire_device abi(Device device) { return {device.type, device.id}; }

Device first_device(const Backend& backend) {
  const quire_device device = backend.first_device().device;
  return {device.type, device.id};
}

void require_backend(const Backend& backend, const Stream& stream) {
  if (&backend != &stream.backend()) reject("stream", fmt::format("a stream of backend {}", stream.backend().name()), fmt::format("streams of backend {}", backend.name()));
}

// Bytes from a tensor's first to its last element.
std::int64_t span_bytes(const Tensor& tensor) {
  if (tensor.elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t axis = 0; axis < tensor.rank(); ++axis) last += (tensor.size(axis) - 1) * tensor.stride(axis);
  return (last + 1) * size_of(tensor.dtype());
}

std::shared_ptr<void> allocate(const Backend& backend, Device device, std::int64_t bytes, const Stream* stream, std::string_view argument) {
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  const auto state = stream != nullptr ? stream->state() : nullptr;
  backend.require(backend.table().allocate(abi(device), state ? state->handle : nullptr, size, &data), argument);
  return {data, [&backend, device, state](void* p) { (void)backend.table().free(abi(device), state ? state->handle : nullptr, p); }};
}

}  // namespace

std::string to_string(Device device) {
  return device.is_host() ? std::string("the host") : fmt::format("device type {} number {}", device.type, device.id);
}

Stream::State::State(const Backend& of, Device on) : backend(&of), device(on) {
  require_device(of, on, "device");
  of.require(of.table().stream_create(abi(on), &handle), "stream_create");
}

Stream::State::~State() { (void)backend->table().stream_destroy(handle); }

Stream::Stream(const Backend& backend) : Stream(backend, first_device(backend)) {}
Stream::Stream(const Backend& backend, Device device) : state_(std::make_shared<State>(backend, device)) {}

void Stream::synchronize() const { backend().require(backend().table().synchronize(get()), "synchronize"); }

struct Event::State {
  State(const Backend& of, Device on) : backend(&of) {
    require_device(of, on, "device");
    of.require(of.table().event_create(abi(on), &handle), "event_create");
  }
  ~State() { (void)backend->table().event_destroy(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  const Backend* backend;
  quire_event* handle = nullptr;
};

Event::Event(const Backend& backend) : Event(backend, first_device(backend)) {}
Event::Event(const Backend& backend, Device device) : state_(std::make_shared<State>(backend, device)) {}

void Event::record(const Stream& stream) {
  require_backend(*state_->backend, stream);
  state_->backend->require(state_->backend->table().event_record(state_->handle, stream.get()), "event_record");
}

void Event::wait(const Stream& stream) const {
  require_backend(*state_->backend, stream);
  state_->backend->require(state_->backend->table().event_wait(state_->handle, stream.get()), "event_wait");
}

void Event::synchronize() const { state_->backend->require(state_->backend->table().event_synchronize(state_->handle), "event_synchronize"); }

Tensor empty_on(const Backend& backend, Device device, DType dtype, Shape shape, const Stream* stream, std::string_view argument) {
  if (device.is_host()) return Tensor::empty(dtype, std::move(shape), argument);
  require_device(backend, device, "device");
  if (stream != nullptr) require_backend(backend, *stream);
  auto memory = allocate(backend, device, checked_bytes(dtype, shape, argument), stream, argument);
  void* data = memory.get();
  return Tensor::share(std::move(memory), data, dtype, std::move(shape), {}, device);
}

Tensor copy_to(const Tensor& tensor, const Backend& backend, Device device, const Stream* stream) {
  if (!tensor.defined()) return {};
  if (!device.is_host()) require_device(backend, device, "device");
  if (!tensor.device().is_host()) require_device(backend, tensor.device(), "tensor");
  if (stream != nullptr) require_backend(backend, *stream);
  const std::int64_t bytes = span_bytes(tensor);
  Tensor copy;
  if (device.is_host()) {
    const Tensor room = Tensor::empty(DType::u8, {bytes}, "tensor");
    const auto owner = std::make_shared<Tensor>(room);
    copy = Tensor::share(owner, room.raw(), tensor.dtype(), tensor.shape(), tensor.strides());
  } else {
    auto memory = allocate(backend, device, bytes, stream, "tensor");
    void* data = memory.get();
    copy = Tensor::share(std::move(memory), data, tensor.dtype(), tensor.shape(), tensor.strides(), device);
  }
  if (bytes > 0) {
    backend.require(backend.table().copy(stream != nullptr ? stream->get() : nullptr, copy.raw(), abi(device), tensor.raw(), abi(tensor.device()),
                                         static_cast<std::size_t>(bytes)),
                    "copy");
  }
  return copy;
}

const Backend& backend_of(Device device) {
  for (const BackendStatus& status : backends()) {
    if (!status.available) continue;
    for (const quire_device_info& info : status.backend->devices()) {
      if (Device{info.device.type, info.device.id} == device) return *status.backend;
    }
  }
  throw Error(ErrorCode::unavailable, "devices",
              fmt::format("devices: type {} number {}; allowed: devices of a loaded backend (quire backends lists them)", device.type, device.id));
}

}  // namespace quire
