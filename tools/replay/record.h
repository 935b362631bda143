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

/// Per step: `page_table` from the index, `attend`, and a call per gated-delta layer. Slots and pages are numbered anew, in the order in which
/// the program names them; what it reads before it has written it is in its pools, and the rest of them is NaN. Large tensors go into an
/// .npz file beside the case.
class StepRecorder {
 public:
  StepRecorder(const Options& options, const Layers& layers, const PageCache& pages, const Tables& tables);

  /// Before the step's calls. Takes the step if it is the one wanted, or the wanted request's lane of it.
  void record(std::int64_t step, const Batch& batch, const Activations& activations);
  bool has_steps() const { return !steps_.empty(); }
  /// Writes the case file and the file beside it. Raises invalid_argument (`--save`) where nothing was recorded or a file can't be written.
  void write() const;

 private:
  using Json = nlohmann::json;
  void record_lanes(std::int64_t step, const Batch& batch, const Activations& activations);
  Json index(std::int64_t step, const Batch& batch, bool is_draft);
  Json tensor(const std::string& key, const Tensor& values);
  DraftStates renumbered_states(const Batch& batch);
  void take_slots(const Lane& lane);
  void take_states(const Lane& lane);
  /// The program's number of an engine's slot or state. Where `is_read`, what it holds now is kept, unless the program has it already.
  std::int64_t take_slot(std::int64_t slot, bool is_read);
  std::int64_t take_state(std::int64_t state, bool is_read);

  const Options& options_;
  const Layers& layers_;
  const PageCache& pages_;
  const Tables& tables_;
  Json steps_ = Json::array();
  std::map<std::string, Tensor> beside_;
  using Numbers = std::map<std::int64_t, std::int64_t>;  // the program's by the engine's
  Numbers rows_, slots_, states_;
  std::vector<std::vector<std::int64_t>> table_;  // the program's rows of the table of slots, as far as they are in use
  std::vector<float> k_pool_, v_pool_;
  std::vector<std::vector<float>> state_pools_;   // by layer
};

}  // namespace quire::replay
