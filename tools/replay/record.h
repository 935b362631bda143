// Writing down what a step, or a request through all its steps, asked of the layers: a program of the case format, to be run on any backend.
#pragma once

#include "activations.h"
#include "batch.h"
#include "layers.h"
#include "options.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace quire::replay {

/// Per step: `page_table` from the index, `attend`, and a call per gated-delta layer. Pools are the engine's, as reserved memory that holds
/// what the program reads before it has written it. Large tensors go into an .npz file beside the case.
class StepRecorder {
 public:
  StepRecorder(const Options& options, const Layers& layers, const PageCache& pages, const Tables& tables);

  /// Before the step's calls. Takes the step if it is the one wanted, or the wanted request's lane of it.
  void record(std::int64_t step, const Batch& batch, const Activations& activations);
  /// Writes the case file and the file beside it. Raises invalid_argument (`--save`) where nothing was recorded or a file can't be written.
  void write() const;

 private:
  using Json = nlohmann::json;
  void record_lanes(std::int64_t step, const Batch& batch, const Activations& activations);
  Json index(std::int64_t step, const Batch& batch, bool is_draft);
  Json tensor(const std::string& key, const Tensor& values);
  /// What a step reads and this program has not written is kept as it is now.
  void take_slots(const Lane& lane);
  void take_states(const Lane& lane);

  const Options& options_;
  const Layers& layers_;
  const PageCache& pages_;
  const Tables& tables_;
  Json steps_ = Json::array();
  std::map<std::string, Tensor> beside_;
  std::map<std::int64_t, std::int64_t> rows_;            // the engine's table rows by the program's
  std::vector<Tensor> table_;                            // the program's rows of the table of slots, as far as they are in use
  std::set<std::int64_t> written_slots_, written_states_;
  std::map<std::int64_t, Json> k_rows_, v_rows_;         // by slot
  std::vector<std::map<std::int64_t, Json>> state_rows_;  // by layer and page
};

}  // namespace quire::replay
