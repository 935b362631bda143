// Host tensors on a device, there and back.
#include <quire/dtype.h>
#include <quire/staging.h>

#include <algorithm>

namespace quire {

MemorySpan span_of(const quire_tensor& tensor) {
  std::int64_t last = 0;
  for (std::int32_t axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] == 0) return {};
    last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  auto* begin = static_cast<std::byte*>(tensor.data);
  return {begin, begin + (last + 1) * size_of(static_cast<DType>(tensor.dtype))};
}

std::vector<MemorySpan> spans_of(std::span<Call* const> calls) {
  std::vector<MemorySpan> spans;
  for (const Call* call : calls) {
    for (const CallTensor& entry : call->tensors()) {
      if (const MemorySpan span = span_of(*entry.tensor); span.begin != span.end) spans.push_back(span);
    }
  }
  std::sort(spans.begin(), spans.end(), [](const MemorySpan& a, const MemorySpan& b) { return a.begin < b.begin; });
  std::vector<MemorySpan> joined;
  for (const MemorySpan& span : spans) {
    if (!joined.empty() && span.begin < joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

Staging::Staging(const Backend& backend, Device device, quire_stream* stream, std::span<Call* const> calls, std::vector<MemorySpan> spans)
    : backend_(backend), device_{device.type, device.id}, stream_(stream), spans_(std::move(spans)), changed_(spans_.size()) {
  // A host pointer's place within 256 bytes is kept: a backend may count on no more than it is given.
  constexpr std::uintptr_t alignment = 256;
  try {
    for (const MemorySpan& span : spans_) {
      void* memory = nullptr;
      const auto bytes = static_cast<std::size_t>(span.end - span.begin) + alignment;
      backend_.require(backend_.table().allocate(device_, stream_, bytes, &memory), "allocate");
      copies_.push_back(static_cast<std::byte*>(memory));
    }
  } catch (...) {
    for (std::byte* copy : copies_) (void)backend_.table().free(device_, stream_, copy);
    throw;
  }
  for (const MemorySpan& span : spans_) offsets_.push_back(reinterpret_cast<std::uintptr_t>(span.begin) % alignment);
  for (Call* call : calls) {
    for (const CallTensor& entry : call->tensors()) {
      entry.tensor->device = device_;
      const auto holder = std::find_if(spans_.begin(), spans_.end(), [&](const MemorySpan& span) { return span.holds(entry.tensor->data); });
      if (holder == spans_.end()) continue;  // no element
      const auto n = static_cast<std::size_t>(holder - spans_.begin());
      if (entry.role != TensorRole::read) changed_[n] = true;
      entry.tensor->data = copies_[n] + offsets_[n] + (static_cast<std::byte*>(entry.tensor->data) - holder->begin);
    }
  }
}

Staging::~Staging() {
  for (std::byte* copy : copies_) (void)backend_.table().free(device_, stream_, copy);
}

void Staging::stand_for(std::size_t n, std::byte* begin) { spans_[n] = {begin, begin + (spans_[n].end - spans_[n].begin)}; }

namespace {
constexpr quire_device host{QUIRE_DEVICE_CPU, 0};
}  // namespace

void Staging::upload(quire_stream* stream) const {
  for (std::size_t n = 0; n < spans_.size(); ++n) upload(stream, n);
}

void Staging::download(quire_stream* stream) const {
  for (std::size_t n = 0; n < spans_.size(); ++n) {
    if (changed_[n]) download(stream, n);
  }
}

void Staging::upload(quire_stream* stream, std::size_t n) const {
  const auto bytes = static_cast<std::size_t>(spans_[n].end - spans_[n].begin);
  backend_.require(backend_.table().copy(stream, copy(n), device_, spans_[n].begin, host, bytes), "copy");
}

void Staging::download(quire_stream* stream, std::size_t n) const {
  const auto bytes = static_cast<std::size_t>(spans_[n].end - spans_[n].begin);
  backend_.require(backend_.table().copy(stream, spans_[n].begin, host, copy(n), device_, bytes), "copy");
}

}  // namespace quire
