// Running a sandboxed call at once or as a captured step.
#include "execute.h"

#include <quire/staging.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace quire::conformance {

namespace {

Device first_device(const Backend& backend) {
  const quire_device device = backend.first_device().device;
  return {device.type, device.id};
}

bool reads_host(const Backend& backend) { return backend.first_device().reads_host != 0; }

// A call on the candidate's device, with memory that stands for the sandbox's.
struct OnDevice {
  OnDevice(const Backend& candidate, Sandbox& sandbox, quire_stream* stream)
      : call(sandbox.call().op(), sandbox.args()), staging(candidate, first_device(candidate), stream, pointers, sandbox.spans()) {}
  Call call;
  Call* const pointers[1] = {&call};
  Staging staging;
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

std::string unsupported_reason(const Backend& candidate, quire_op op, const void* args) {
  if (reads_host(candidate)) return candidate.unsupported_reason(op, args);
  Call call(op, args);  // no tensor's data is read, so only the place is told
  Call* const calls[] = {&call};
  if (is_large(spans_of(calls))) return "the case's pools are too large to be copied to a device";  // far ones: memory that is reserved
  for (const CallTensor& entry : call.tensors()) entry.tensor->device = candidate.first_device().device;
  return candidate.unsupported_reason(op, call.args());
}

void run_at_once(const Backend& candidate, Sandbox& sandbox) {
  if (reads_host(candidate)) return candidate.run(nullptr, sandbox.call().op(), sandbox.args());
  const OnDevice device(candidate, sandbox, nullptr);
  device.staging.upload(nullptr);
  candidate.run(nullptr, sandbox.call().op(), device.call.args());
  device.staging.download(nullptr, true);
}

bool run_as_step(const Backend& candidate, Sandbox& sandbox, const Stream* stream) {
  if (is_large(sandbox.spans())) return false;
  const quire_backend_table& table = candidate.table();
  quire_stream* const queue = stream != nullptr ? stream->get() : nullptr;
  Call captured(sandbox.call().op(), sandbox.args());
  const Blank blank(captured);
  std::optional<OnDevice> device;
  std::unique_ptr<Staging> blank_on_device;
  if (!reads_host(candidate)) {
    device.emplace(candidate, sandbox, queue);
    Call* const calls[] = {&captured};
    blank_on_device = std::make_unique<Staging>(candidate, first_device(candidate), queue, calls, spans_of(calls));
    blank_on_device->upload(queue);
  }
  const quire_call call{sizeof(quire_call), captured.op(), captured.args()};
  quire_step* step = nullptr;
  const quire_status status = table.capture(candidate.first_device().device, &call, 1, &step);
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
  if (device) device->staging.upload(queue);
  candidate.require(table.launch(queue, step, tensors.data(), static_cast<std::int32_t>(tensors.size())), "launch");
  if (device) device->staging.download(queue, true);
  if (stream != nullptr) stream->synchronize();
  return true;
}

}  // namespace quire::conformance
