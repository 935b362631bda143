// Mutants about captured steps: what a launch puts where, and when a step's calls run (A14).
#include "specification.h"

#include <algorithm>
#include <memory>

namespace quire::conformance {

namespace {

Specification wrong_step(const char* name, const char* mistake, StepFault fault) {
  Specification mutant{name, mistake, {"A14"}};
  mutant.step_fault = fault;
  mutant.needs = Needs::steps;
  return mutant;
}

struct StepTensor {
  quire_tensor* tensor;  // the call's own, pointed elsewhere by launches
  void* captured;
  bool is_of_index, is_input;
};

struct MutantStep {
  std::deque<Call> calls;  // addresses stay
  std::vector<StepTensor> tensors;
  Scratch scratch;
  int launches = 0;
};

}  // namespace

quire_status capture_mutant(StepFault fault, const quire_call* calls, std::int32_t count, quire_step** step, quire_status (*run)(quire_op, const void*)) {
  auto made = std::make_unique<MutantStep>();
  for (std::int32_t n = 0; n < count; ++n) {
    const Call& call = made->calls.emplace_back(calls[n].op, calls[n].args);
    for (const CallTensor& entry : call.tensors()) {
      made->tensors.push_back({entry.tensor, entry.tensor->data, entry.name.starts_with("index."), entry.role == TensorRole::read});
    }
    if (fault == StepFault::runs_when_captured) {
      if (const quire_status status = run(call.op(), call.args()); status != QUIRE_OK) return status;
    }
  }
  for (StepTensor& entry : made->tensors) {
    const bool reads_now = (fault == StepFault::reads_index_when_captured && entry.is_of_index) ||
                           (fault == StepFault::reads_values_when_captured && entry.is_input && !entry.is_of_index);
    if (reads_now && entry.captured != nullptr) entry.captured = const_cast<std::byte*>(made->scratch.keep(*entry.tensor).data());
  }
  *step = reinterpret_cast<quire_step*>(made.release());
  return QUIRE_OK;
}

quire_status launch_mutant(StepFault fault, quire_step* handle, const quire_tensor* const* tensors, quire_status (*run)(quire_op, const void*)) {
  auto& step = *reinterpret_cast<MutantStep*>(handle);
  if (fault == StepFault::runs_once && step.launches++ > 0) return QUIRE_OK;
  std::vector<void*> seen;
  for (std::size_t n = 0; n < step.tensors.size(); ++n) {
    const StepTensor& entry = step.tensors[n];
    bool stays = false;
    switch (fault) {
      case StepFault::keeps_captured_tensors: stays = true; break;
      case StepFault::keeps_captured_index:
      case StepFault::reads_index_when_captured: stays = entry.is_of_index; break;
      case StepFault::reads_values_when_captured: stays = entry.is_input && !entry.is_of_index; break;
      case StepFault::keeps_captured_outputs: stays = !entry.is_input; break;
      case StepFault::replaces_first_use_only:
        stays = std::find(seen.begin(), seen.end(), entry.captured) != seen.end();
        seen.push_back(entry.captured);
        break;
      default: break;
    }
    entry.tensor->data = stays ? entry.captured : tensors[n]->data;
  }
  const std::size_t calls = step.calls.size();
  for (std::size_t n = 0; n < calls; ++n) {
    if (fault == StepFault::loses_last_call && calls > 1 && n + 1 == calls) break;
    const Call& call = step.calls[fault == StepFault::runs_in_reverse ? calls - 1 - n : n];
    if (const quire_status status = run(call.op(), call.args()); status != QUIRE_OK) return status;
  }
  return QUIRE_OK;
}

quire_status free_mutant_step(quire_step* step) {
  delete reinterpret_cast<MutantStep*>(step);
  return QUIRE_OK;
}

std::vector<Specification> step_mutants() {
  return {
      wrong_step("step-keeps-captured-tensors", "a launch runs on the tensors that were captured", StepFault::keeps_captured_tensors),
      wrong_step("step-keeps-captured-index", "a launch reads the index that was captured", StepFault::keeps_captured_index),
      wrong_step("step-keeps-captured-outputs", "a launch writes the pools and results that were captured", StepFault::keeps_captured_outputs),
      wrong_step("step-reads-index-when-captured", "the index's values are read when the step is captured", StepFault::reads_index_when_captured),
      wrong_step("step-reads-values-when-captured", "the other inputs' values are read when the step is captured", StepFault::reads_values_when_captured),
      wrong_step("step-replaces-first-use-only", "a tensor that two calls use is replaced in the first", StepFault::replaces_first_use_only),
      wrong_step("step-loses-last-call", "the last of several calls does not run", StepFault::loses_last_call),
      wrong_step("step-runs-in-reverse", "the calls of a step run from the last to the first", StepFault::runs_in_reverse),
      wrong_step("step-runs-when-captured", "the calls run when they are captured", StepFault::runs_when_captured),
      wrong_step("step-runs-once", "launches after the first compute nothing", StepFault::runs_once),
  };
}

}  // namespace quire::conformance
