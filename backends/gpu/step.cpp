// A captured step.
#include "step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "plan.h"
#include "site.h"

using quire::Call;
using quire::CallTensor;
using quire::gpu::Failure;
using quire::gpu::Launch;
namespace runtime = quire::gpu::runtime;

namespace {

std::span<const std::int64_t> numbers(const std::int64_t* first, std::int32_t count) { return {first, static_cast<std::size_t>(count)}; }

std::string text_of(const quire_tensor& tensor) {
  return fmt::format("dtype {} shape [{}] strides [{}] on {}", tensor.dtype, fmt::join(numbers(tensor.shape, tensor.rank), ", "),
                     fmt::join(numbers(tensor.strides, tensor.rank), ", "), quire::gpu::text_of(tensor.device));
}

bool is_equal(const quire_tensor& a, const quire_tensor& b) {
  return a.dtype == b.dtype && a.device.type == b.device.type && a.device.id == b.device.id &&
         std::ranges::equal(numbers(a.shape, a.rank), numbers(b.shape, b.rank)) &&
         std::ranges::equal(numbers(a.strides, a.rank), numbers(b.strides, b.rank));
}

bool is_equal(const Launch& a, const Launch& b) {
  return a.kernel.entry == b.kernel.entry && a.blocks == b.blocks && a.threads == b.threads && a.shared_bytes == b.shared_bytes &&
         a.parameter_bytes == b.parameter_bytes && std::memcmp(a.parameters, b.parameters, a.parameter_bytes) == 0;
}

}  // namespace

quire_step::quire_step(std::int32_t device, std::span<const quire_call> calls) : device_(device) {
  std::size_t bytes = 0;
  for (const quire_call& given : calls) {
    quire::gpu::require_args(given.op, given.args);
    const Call& call = calls_.emplace_back(given.op, given.args);
    const quire::gpu::Site site = quire::gpu::site_of(call);
    if (!site.is_host && site.device != device) {
      throw Failure{QUIRE_INVALID_ARGUMENT,
                    fmt::format("calls: tensors on device number {}; allowed: on the step's, number {}", site.device, device)};
    }
    quire::gpu::require_supported(call, {site.is_host, device});
    tensors_.insert(tensors_.end(), call.tensors().begin(), call.tensors().end());
    // A call's workspace is free again when the next begins.
    bytes = std::max(bytes, quire::gpu::workspace_bytes(call));
  }
  try {
    if (bytes > 0) workspace_ = runtime::allocate(device_, nullptr, bytes);
    launches_ = plan_calls();
    graph_ = runtime::graph_create(device_, launches_);
  } catch (...) {
    if (workspace_ != nullptr) runtime::release(device_, nullptr, workspace_);
    throw;
  }
}

quire_step::~quire_step() {
  if (graph_ != nullptr) runtime::graph_destroy(graph_);
  if (workspace_ != nullptr) runtime::release(device_, nullptr, workspace_);
}

std::vector<Launch> quire_step::plan_calls() const {
  std::vector<Launch> launches;
  for (const Call& call : calls_) {
    for (const Launch& launch : quire::gpu::plan(call, workspace_)) launches.push_back(launch);
  }
  return launches;
}

void quire_step::require_equal(std::span<const quire_tensor* const> tensors) const {
  if (tensors.size() != tensors_.size()) {
    throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("tensor_count: {}; allowed: the {} of the step", tensors.size(), tensors_.size())};
  }
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const CallTensor& captured = tensors_[n];
    if (tensors[n] == nullptr)
      throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("{}: nothing, as tensor {} of the step; allowed: a tensor", captured.name, n)};
    if (is_equal(*tensors[n], *captured.tensor)) continue;
    throw Failure{QUIRE_INVALID_ARGUMENT, fmt::format("{}: {}, as tensor {} of the step; allowed: {}, as captured", captured.name,
                                                      text_of(*tensors[n]), n, text_of(*captured.tensor))};
  }
}

void quire_step::launch(quire_stream* stream, std::span<const quire_tensor* const> tensors) {
  require_equal(tensors);
  for (std::size_t n = 0; n < tensors.size(); ++n) tensors_[n].tensor->data = tensors[n]->data;
  std::vector<Launch> launches = plan_calls();
  if (!std::ranges::equal(launches, launches_, [](const Launch& a, const Launch& b) { return is_equal(a, b); })) {
    launches_.clear();  // should the update fail, the next launch tries again
    runtime::graph_update(graph_, launches);
    launches_ = std::move(launches);
  }
  runtime::graph_launch(stream, graph_);
}
