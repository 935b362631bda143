// A captured step: calls planned once into a graph, launched with other tensors.
#pragma once

#include <quire/call.h>

#include <deque>
#include <span>
#include <vector>

#include "runtime.h"

/// The ABI's handle. Raises Failure or quire::Error where a call can't be captured, or its tensors don't fit.
struct quire_step {
 public:
  quire_step(std::int32_t device, std::span<const quire_call> calls);
  ~quire_step();
  quire_step(const quire_step&) = delete;
  quire_step& operator=(const quire_step&) = delete;

  std::int32_t device() const { return device_; }
  /// The step's tensors in their order, each equal to the captured one but for its data.
  void launch(quire_stream* stream, std::span<const quire_tensor* const> tensors);

 private:
  void require_equal(std::span<const quire_tensor* const> tensors) const;
  std::vector<quire::gpu::Launch> plan_calls() const;

  std::int32_t device_;
  std::deque<quire::Call> calls_;
  std::vector<quire::CallTensor> tensors_;  // of all calls
  void* workspace_ = nullptr;
  std::vector<quire::gpu::Launch> launches_;
  quire::gpu::runtime::Graph* graph_ = nullptr;
};
