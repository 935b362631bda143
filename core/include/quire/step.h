// Captured steps: ops recorded once on a device, launched again and again with other tensors (architecture: the C ABI).
//
//   Capture capture(stream);                                      // on the stream's device
//   On on = capture.on();
//   Attended first = attend(index, q, k, v, Pool::in_place(k_pool), Pool::in_place(v_pool), {}, on);   // recorded; nothing runs
//   Step step = capture.finish();
//   step.launch(stream);                                          // first.out is written
//   step.launch(stream, {{{q, next_q}, {k, next_k}, {v, next_v}}, {{index, next_index}}});
#pragma once

#include <quire/ops.h>
#include <quire/stream.h>

#include <memory>
#include <utility>
#include <vector>

namespace quire {

/// What a launch puts in the place of what was captured. Everything captured that lies in the memory of the pair's first tensor lies at the
/// same place of the second, which has its dtype, shape, strides and device. An index's tensors are replaced together, by an index of equal
/// structure (A14). What is not named stays as captured, results too.
struct Bindings {
  std::vector<std::pair<Tensor, Tensor>> tensors;
  std::vector<std::pair<Index, Index>> indices;
};

/// A recorded list of calls. Shares its state when copied.
class Step {
 public:
  /// Runs the step's calls in order in the stream, on the tensors bound. Raises invalid_argument: `index` for another structure, with the
  /// difference of the two; `tensors` for a tensor that the step has not or one that differs; `stream` for another device's. Nothing runs
  /// then. Values are not looked at. One launch of a step ends before its next begins: on one stream they do. A null stream is synchronous.
  void launch(const Stream* stream, const Bindings& bindings = {}) const;
  void launch(const Stream& stream, const Bindings& bindings = {}) const { launch(&stream, bindings); }
  /// What the step depends on beyond its tensors' values: each call's op, index structure, tensors and scalars. Two lists of calls can share a
  /// step exactly when their keys are equal.
  const Structure& key() const;

 private:
  friend class Capture;
  struct State;
  std::shared_ptr<State> state_;
};

/// Records the ops that are called with `on()`. They check their arguments and make their results, whose contents a launch writes.
/// Pools are changed in place (Pool::in_place, or given up); one to be copied is refused, since the copy would not be part of the step.
class Capture {
 public:
  /// On the stream's device. The stream is only asked where.
  explicit Capture(const Stream& stream);
  /// On a backend's device; host tensors too where the device reads them. `stage`: host tensors are copied there and back at each launch.
  Capture(const Backend& backend, Device device, bool stage = false);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  On on();
  /// As Step::key, of what was recorded so far: to look up a step that was finished before.
  Structure key() const;
  /// Hands the calls to the backend. Raises unsupported where it captures nothing or not these ops; invalid_argument (`capture`) when there
  /// is none.
  Step finish();

  /// For the ops: records a call, and keeps what it stands on alive.
  void record(quire_op op, const void* args, std::vector<Tensor> tensors);

 private:
  void require_open() const;
  std::unique_ptr<Step::State> state_;
};

/// Where two structures differ, "window: 4 captured, 3 given; ..."; empty where they are equal.
std::string difference(const Structure& captured, const Structure& given);

}  // namespace quire
