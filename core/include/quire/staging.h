// Host tensors on a backend that computes on devices: copied there, computed, copied back, all in a stream's order. Nobody does it silently:
// On::stage_on asks for it.
#pragma once

#include <quire/call.h>
#include <quire/registry.h>
#include <quire/tensor.h>

#include <cstddef>
#include <span>
#include <vector>

namespace quire {

/// A stretch of memory.
struct MemorySpan {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  bool holds(const void* address) const { return address >= begin && address < end; }
};

/// The memory from a tensor's first element to its last; empty where it has none.
MemorySpan span_of(const quire_tensor& tensor);

/// The memory of calls' tensors, those that share bytes joined, in order of addresses.
std::vector<MemorySpan> spans_of(std::span<Call* const> calls);

/// Device memory that stands for the host memory of some calls; made, its calls' tensors lie on the device.
class Staging {
 public:
  /// `spans` hold all tensors of the calls (spans_of, or wider where the memory around them shall be seen too). Raises the backend's error.
  Staging(const Backend& backend, Device device, quire_stream* stream, std::span<Call* const> calls, std::vector<MemorySpan> spans);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Copies the host's bytes to the device, and those of the stretches that a call changes back. Ordered in the stream.
  void upload(quire_stream* stream) const;
  void download(quire_stream* stream) const;
  /// One stretch alone, changed or not.
  void upload(quire_stream* stream, std::size_t n) const;
  void download(quire_stream* stream, std::size_t n) const;
  /// Where the n-th stretch lies on the device.
  std::byte* copy(std::size_t n) const { return copies_[n] + offsets_[n]; }

  const std::vector<MemorySpan>& spans() const { return spans_; }
  /// The n-th span stands for other host memory of its size from now on.
  void stand_for(std::size_t n, std::byte* begin);

 private:
  const Backend& backend_;
  quire_device device_;
  quire_stream* stream_;
  std::vector<MemorySpan> spans_;
  std::vector<std::byte*> copies_;
  std::vector<std::size_t> offsets_;  // of a span's copy in its memory
  std::vector<bool> changed_;          // by a call
};

}  // namespace quire
