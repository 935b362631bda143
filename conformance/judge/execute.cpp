// Running a sandboxed call at once or as a captured step.
#include "execute.h"

#include "case/reserved.h"

#include <quire/staging.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace quire::conformance {

namespace {

constexpr quire_device host_device{QUIRE_DEVICE_CPU, 0};
constexpr std::size_t piece = std::size_t{1} << 24;

// Pools that are reserved and hardly used: the device's whole memory is made zero there, the used pages are copied, and what comes back is
// compared piece by piece, so that the host's untouched pages stay so.
bool is_sparse(const MemorySpan& span) { return is_reserved_size(static_cast<std::size_t>(span.end - span.begin)); }

void upload_sparse(const Backend& candidate, quire_device device, const MemorySpan& span, std::byte* copy) {
  const auto bytes = static_cast<std::size_t>(span.end - span.begin);
  const std::vector<std::byte> zeros(piece);
  std::size_t done = std::min(piece, bytes);
  candidate.require(candidate.table().copy(nullptr, copy, device, zeros.data(), host_device, done), "copy");
  while (done < bytes) {
    const std::size_t next = std::min(done, bytes - done);
    candidate.require(candidate.table().copy(nullptr, copy + done, device, copy, device, next), "copy");
    done += next;
  }
  for (const auto& [first, last] : used_ranges(span.begin, bytes)) {
    candidate.require(candidate.table().copy(nullptr, copy + first, device, span.begin + first, host_device, last - first), "copy");
  }
}

// A page that the host has not touched is zero, and stays untouched where the device's is zero too.
void download_sparse(const Backend& candidate, quire_device device, const MemorySpan& span, const std::byte* copy) {
  constexpr std::size_t page = 4096;
  const auto bytes = static_cast<std::size_t>(span.end - span.begin);
  const std::vector<std::byte> zeros(page);
  const auto used = used_ranges(span.begin, bytes);
  auto range = used.begin();
  std::vector<std::byte> now(piece);
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t size = std::min(piece, bytes - at);
    candidate.require(candidate.table().copy(nullptr, now.data(), host_device, copy + at, device, size), "copy");
    for (std::size_t n = 0; n < size; n += page) {
      const std::size_t part = std::min(page, size - n);
      const std::size_t first = at + n;
      while (range != used.end() && range->second <= first) ++range;
      const bool is_used = range != used.end() && range->first < first + part;
      const std::byte* before = is_used ? span.begin + first : zeros.data();
      if (std::memcmp(before, now.data() + n, part) != 0) std::memcpy(span.begin + first, now.data() + n, part);
    }
  }
}

// A call on the candidate's device, with memory that stands for the sandbox's.
class OnDevice {
 public:
  OnDevice(const Backend& candidate, const Placement& placement, Sandbox& sandbox, quire_stream* stream)
      : call(sandbox.call().op(), sandbox.args()),
        candidate_(candidate),
        device_{placement.device.type, placement.device.id},
        staging_(candidate, placement.device, stream, pointers_, sandbox.spans()) {}

  Call call;

  void upload(quire_stream* stream) const {
    for (std::size_t n = 0; n < staging_.spans().size(); ++n) {
      if (is_sparse(staging_.spans()[n])) {
        upload_sparse(candidate_, device_, staging_.spans()[n], staging_.copy(n));
      } else {
        staging_.upload(stream, n);
      }
    }
  }

  // Guard zones and what may not be written too.
  void download(quire_stream* stream) const {
    for (std::size_t n = 0; n < staging_.spans().size(); ++n) {
      if (is_sparse(staging_.spans()[n])) {
        download_sparse(candidate_, device_, staging_.spans()[n], staging_.copy(n));
      } else {
        staging_.download(stream, n);
      }
    }
  }

 private:
  const Backend& candidate_;
  quire_device device_;
  Call* const pointers_[1] = {&call};
  Staging staging_;
};

// Memory of the size and places of a call's, all poison. Small calls alone: far pools are not captured.
class Blank {
 public:
  explicit Blank(Call& call) {
    Call* const calls[] = {&call};
    const std::vector<MemorySpan> spans = spans_of(calls);
    constexpr std::size_t alignment = 256;
    for (const MemorySpan& span : spans) {
      auto& memory = memory_.emplace_back(static_cast<std::size_t>(span.end - span.begin) + 2 * alignment, std::byte{0xFF});
      const auto wanted = reinterpret_cast<std::uintptr_t>(span.begin) % alignment;
      const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
      places_.push_back(memory.data() + (wanted + alignment - start % alignment) % alignment);
    }
    for (const CallTensor& entry : call.tensors()) {
      for (std::size_t n = 0; n < spans.size(); ++n) {
        if (!spans[n].holds(entry.tensor->data)) continue;
        entry.tensor->data = places_[n] + (static_cast<std::byte*>(entry.tensor->data) - spans[n].begin);
        break;
      }
    }
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte*> places_;
};

constexpr std::ptrdiff_t most_captured = std::ptrdiff_t{1} << 26;

bool is_large(const std::vector<MemorySpan>& spans) {
  return std::any_of(spans.begin(), spans.end(), [](const MemorySpan& span) { return span.end - span.begin > most_captured; });
}

}  // namespace

Placement::Placement(const Backend& candidate, std::optional<std::int32_t> ordinal) {
  const std::vector<quire_device_info> devices = candidate.devices();
  if (ordinal && (*ordinal < 0 || static_cast<std::size_t>(*ordinal) >= devices.size())) {
    reject("device", fmt::format("{}", *ordinal), fmt::format("0 to {}, the devices of backend {}", static_cast<std::int64_t>(devices.size()) - 1, candidate.name()));
  }
  const quire_device_info info = ordinal ? devices[static_cast<std::size_t>(*ordinal)] : candidate.first_device();
  device = {info.device.type, info.device.id};
  is_staged = !device.is_host() && (ordinal || info.reads_host == 0);
}

On Placement::on(const Backend& candidate) const {
  On on(&candidate, nullptr);
  if (is_staged) on.stage_on = device;
  return on;
}

std::string unsupported_reason(const Backend& candidate, const Placement& placement, quire_op op, const void* args) {
  if (!placement.is_staged) return candidate.unsupported_reason(op, args);
  Call call(op, args);  // no tensor's data is read, so only the place is told
  for (const CallTensor& entry : call.tensors()) entry.tensor->device = {placement.device.type, placement.device.id};
  return candidate.unsupported_reason(op, call.args());
}

void run_at_once(const Backend& candidate, const Placement& placement, Sandbox& sandbox) {
  if (!placement.is_staged) return candidate.run(nullptr, sandbox.call().op(), sandbox.args());
  const OnDevice device(candidate, placement, sandbox, nullptr);
  device.upload(nullptr);
  candidate.run(nullptr, device.call.op(), device.call.args());
  device.download(nullptr);
}

bool run_as_step(const Backend& candidate, const Placement& placement, Sandbox& sandbox, const Stream* stream) {
  if (is_large(sandbox.spans())) return false;
  const quire_backend_table& table = candidate.table();
  quire_stream* const queue = stream != nullptr ? stream->get() : nullptr;
  Call captured(sandbox.call().op(), sandbox.args());
  const Blank blank(captured);
  std::optional<OnDevice> device;
  std::unique_ptr<Staging> blank_on_device;
  if (placement.is_staged) {
    device.emplace(candidate, placement, sandbox, queue);
    Call* const calls[] = {&captured};
    blank_on_device = std::make_unique<Staging>(candidate, placement.device, queue, calls, spans_of(calls));
    blank_on_device->upload(queue);
  }
  const quire_call call{sizeof(quire_call), captured.op(), captured.args()};
  quire_step* step = nullptr;
  const quire_status status = table.capture({placement.device.type, placement.device.id}, &call, 1, &step);
  if (status == QUIRE_UNSUPPORTED) return false;
  candidate.require(status, "capture");
  struct Freed {
    ~Freed() { (void)table.step_free(step); }
    const quire_backend_table& table;
    quire_step* step;
  };
  const Freed freed{table, step};
  std::vector<const quire_tensor*> tensors;
  for (const CallTensor& entry : device ? device->call.tensors() : sandbox.call().tensors()) tensors.push_back(entry.tensor);
  if (device) device->upload(queue);
  candidate.require(table.launch(queue, step, tensors.data(), static_cast<std::int32_t>(tensors.size())), "launch");
  if (device) device->download(queue);
  if (stream != nullptr) stream->synchronize();
  return true;
}

}  // namespace quire::conformance
