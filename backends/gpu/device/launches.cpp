// Launches, one after another in a stream, or as a graph.
#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "devices.h"
#include "streams.h"

namespace quire::gpu {

namespace {

// More than every block may have has to be asked for, once per kernel and device. Always for the most that there is: two threads that asked
// for less and more could take it from each other.
void allow_shared_memory(std::int32_t device, const Launch& launch) {
  if (launch.shared_bytes <= vendor::unasked_shared_bytes) return;
  static std::mutex& mutex = *new std::mutex;
  static auto& allowed = *new std::set<std::pair<std::int32_t, const void*>>;
  const std::lock_guard lock(mutex);
  if (allowed.contains({device, launch.kernel.entry})) return;
  VENDOR(FuncAttributes) attributes{};
  VENDOR_CALL(FuncGetAttributes, &attributes, launch.kernel.entry);
  const std::int64_t most = runtime::limits(device).shared_bytes - static_cast<std::int64_t>(attributes.sharedSizeBytes);
  VENDOR_CALL(FuncSetAttribute, launch.kernel.entry, VENDOR(FuncAttributeMaxDynamicSharedMemorySize), static_cast<int>(most));
  allowed.insert({device, launch.kernel.entry});
}

dim3 grid_of(std::int32_t device, const Launch& launch) {
  const std::int64_t most = std::min(runtime::limits(device).blocks, vendor::most_threads / launch.threads);
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(launch.blocks, 1, most)));
}
dim3 block_of(const Launch& launch) { return dim3(static_cast<unsigned>(launch.threads)); }

// The runtimes read parameters, once, before their calls return.
void* parameters_of(const Launch& launch) { return const_cast<std::byte*>(launch.parameters); }

// Names the kernel in an error.
template <typename Body>
void naming(const Launch& launch, const Body& body) {
  try {
    body();
  } catch (Failure& failure) {
    failure.message = std::string(launch.kernel.name) + ": " + failure.message;
    throw;
  }
}

void launch_one(std::int32_t device, VENDOR(Stream_t) stream, const Launch& launch) {
  naming(launch, [&] {
    allow_shared_memory(device, launch);
    void* arguments[] = {parameters_of(launch)};
    VENDOR_CALL(LaunchKernel, launch.kernel.entry, grid_of(device, launch), block_of(launch), arguments, static_cast<std::size_t>(launch.shared_bytes), stream);
  });
}

// Calls `body` with the launch as a graph's node takes it.
template <typename Body>
void as_node(std::int32_t device, const Launch& launch, const Body& body) {
  naming(launch, [&] {
    allow_shared_memory(device, launch);
    void* arguments[] = {parameters_of(launch)};
    VENDOR(KernelNodeParams) node{};
    node.func = const_cast<void*>(launch.kernel.entry);
    node.gridDim = grid_of(device, launch);
    node.blockDim = block_of(launch);
    node.sharedMemBytes = static_cast<unsigned>(launch.shared_bytes);
    node.kernelParams = arguments;
    body(node);
  });
}

}  // namespace

namespace runtime {

void launch(std::int32_t id, quire_stream* stream, std::span<const Launch> launches) {
  Work work(id, stream);
  for (const Launch& launch : launches) launch_one(id, work.handle(), launch);
  work.finish();
}

// A chain of kernels. Without a launch it has no executable: there is nothing to do.
struct Graph {
  explicit Graph(std::int32_t of) : device(of) {}
  ~Graph() {
    if (executable != nullptr) ignore(VENDOR(GraphExecDestroy)(executable));
    if (graph != nullptr) ignore(VENDOR(GraphDestroy)(graph));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::int32_t device;
  VENDOR(Graph_t) graph = nullptr;
  VENDOR(GraphExec_t) executable = nullptr;
  std::vector<VENDOR(GraphNode_t)> nodes;
};

Graph* graph_create(std::int32_t id, std::span<const Launch> launches) {
  Work work(id, nullptr);
  auto graph = std::make_unique<Graph>(id);
  if (launches.empty()) return graph.release();
  VENDOR_CALL(GraphCreate, &graph->graph, 0);
  for (const Launch& launch : launches) {
    as_node(id, launch, [&](const VENDOR(KernelNodeParams)& parameters) {
      VENDOR(GraphNode_t) node = nullptr;
      const auto* before = graph->nodes.empty() ? nullptr : &graph->nodes.back();
      VENDOR_CALL(GraphAddKernelNode, &node, graph->graph, before, before != nullptr ? 1u : 0u, &parameters);
      graph->nodes.push_back(node);
    });
  }
  VENDOR_CALL(GraphInstantiateWithFlags, &graph->executable, graph->graph, 0);
  require(vendor::upload(graph->executable, work.handle()), VENDOR_TEXT(GraphUpload));
  work.finish();
  return graph.release();
}

// Launches that are under way keep the parameters that they were launched with.
void graph_update(Graph* graph, std::span<const Launch> launches) {
  if (launches.size() != graph->nodes.size()) throw Failure{QUIRE_INTERNAL, "a step's launches changed in number"};
  const CurrentDevice current(graph->device);
  for (std::size_t n = 0; n < launches.size(); ++n) {
    as_node(graph->device, launches[n], [&](const VENDOR(KernelNodeParams)& parameters) {
      VENDOR_CALL(GraphExecKernelNodeSetParams, graph->executable, graph->nodes[n], &parameters);
    });
  }
}

void graph_launch(quire_stream* stream, Graph* graph) {
  if (graph->executable == nullptr) return;
  Work work(graph->device, stream);
  VENDOR_CALL(GraphLaunch, graph->executable, work.handle());
  work.finish();
}

void graph_destroy(Graph* graph) {
  std::unique_ptr<Graph> owner(graph);
  const CurrentDevice current(graph->device);
  owner.reset();
}

}  // namespace runtime
}  // namespace quire::gpu
