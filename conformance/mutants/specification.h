// What a mutant is made of: a fault of the honest backend, changed arguments, or spoilt results.
#pragma once

#include <quire/call.h>
#include <quire/dtype.h>

#include "../honest/backend.h"
#include "mutants.h"

#include <cstring>
#include <deque>

namespace quire::conformance {

/// Copies of a call's tensors, so that nothing of the caller's is changed by accident.
class Scratch {
 public:
  /// The memory of a tensor as it is now, gaps included.
  const std::vector<std::byte>& keep(const quire_tensor& tensor);
  /// Points every tensor of that name at a copy in which change(number) stands for each of its integers.
  template <typename Change>
  void change_integers(Call& call, std::string_view name, const Change& change);

  std::deque<std::vector<std::byte>> kept;
};

/// Calls body(address) for every element of a tensor.
template <typename Body>
void for_elements(const quire_tensor& tensor, const Body& body) {
  const std::int64_t bytes = size_of(static_cast<DType>(tensor.dtype));
  std::vector<std::int64_t> at(static_cast<std::size_t>(tensor.rank), 0);
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] == 0) return;
  }
  for (;;) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < tensor.rank; ++axis) offset += at[static_cast<std::size_t>(axis)] * tensor.strides[axis];
    body(static_cast<std::byte*>(tensor.data) + offset * bytes);
    int axis = tensor.rank - 1;
    while (axis >= 0 && ++at[static_cast<std::size_t>(axis)] == tensor.shape[axis]) at[static_cast<std::size_t>(axis--)] = 0;
    if (axis < 0) return;
  }
}

template <typename Change>
void Scratch::change_integers(Call& call, std::string_view name, const Change& change) {
  for (const CallTensor& entry : call.tensors()) {
    if (entry.name != name || entry.tensor->data == nullptr) continue;
    keep(*entry.tensor);
    entry.tensor->data = kept.back().data();
    for_elements(*entry.tensor, [&](std::byte* place) {
      if (entry.tensor->dtype == QUIRE_I64) {
        std::int64_t number;
        std::memcpy(&number, place, sizeof number);
        number = change(number);
        std::memcpy(place, &number, sizeof number);
      } else {
        std::int32_t number;
        std::memcpy(&number, place, sizeof number);
        number = static_cast<std::int32_t>(change(number));
        std::memcpy(place, &number, sizeof number);
      }
    });
  }
}

/// A mistake about captured steps; all else is honest.
enum class StepFault {
  none,
  keeps_captured_tensors,
  keeps_captured_index,
  keeps_captured_outputs,
  reads_index_when_captured,
  reads_values_when_captured,
  replaces_first_use_only,
  loses_last_call,
  runs_in_reverse,
  runs_when_captured,
  runs_once
};
quire_status capture_mutant(StepFault fault, const quire_call* calls, std::int32_t count, quire_step** step, quire_status (*run)(quire_op, const void*));
quire_status launch_mutant(StepFault fault, quire_step* step, const quire_tensor* const* tensors, quire_status (*run)(quire_op, const void*));
quire_status free_mutant_step(quire_step* step);

struct Specification {
  const char* name;
  const char* mistake;
  std::vector<std::string> laws;
  honest::Fault fault = honest::Fault::none;
  HonestOptions options{};
  Needs needs = Needs::nothing;
  void (*change)(Call& call, Scratch& scratch) = nullptr;             ///< before the call, on its copy
  void (*spoil)(const Call& call, const Scratch& scratch) = nullptr;  ///< after it
  void (*vary)(honest::Setting& setting) = nullptr;                   ///< differs from call to call
  bool (*skips)(const Call& call) = nullptr;                          ///< answers QUIRE_OK and does nothing
  StepFault step_fault = StepFault::none;
};

/// A mistake inside the honest backend.
inline Specification within(const char* name, const char* mistake, std::vector<std::string> laws, honest::Fault fault,
                            Needs needs = Needs::nothing) {
  return {name, mistake, std::move(laws), fault, {}, needs};
}
/// A mistake about the arguments.
inline Specification changed(const char* name, const char* mistake, std::vector<std::string> laws, void (*change)(Call&, Scratch&)) {
  Specification specification{name, mistake, std::move(laws)};
  specification.change = change;
  return specification;
}
/// A mistake about the results.
inline Specification spoilt(const char* name, const char* mistake, std::vector<std::string> laws,
                            void (*spoil)(const Call&, const Scratch&), Needs needs = Needs::nothing) {
  Specification specification{name, mistake, std::move(laws)};
  specification.spoil = spoil;
  specification.needs = needs;
  return specification;
}

// The bank, by subject.
std::vector<Specification> index_mutants();  ///< what tokens see
std::vector<Specification> pool_mutants();   ///< stores and reads of extend
std::vector<Specification> attention_mutants();
std::vector<Specification> rule_mutants();     ///< the recurrence and its numbers
std::vector<Specification> state_mutants();    ///< pools of states, checkpoints, pages
std::vector<Specification> draft_mutants();    ///< drafts of both kinds
std::vector<Specification> backend_mutants();  ///< what any kernel can get wrong
std::vector<Specification> step_mutants();     ///< captured steps

}  // namespace quire::conformance
