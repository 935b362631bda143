// Judging one call of a backend: run beside the reference, compared element by element.
#pragma once

#include <quire/stream.h>

#include "execute.h"
#include "verdict.h"

#include <functional>
#include <memory>
#include <utility>

namespace quire::conformance {

/// Runs the call on the reference and twice on the candidate, each on memory of its own: at once, and captured on other memory and launched (in
/// `stream`), where the candidate captures steps. Compares: bit for bit where the laws are exact,
/// within the derived tolerance of the candidate's contract elsewhere. The caller's memory gets the reference's results. Raises the
/// reference's errors.
/// `wants_shares`: also how much of what the error model allows each element took.
CallVerdict judge_call(const Backend& candidate, const Backend& reference, quire_op op, const void* args, bool wants_shares = false,
                       const Stream* stream = nullptr, std::optional<Placement> placement = {});

/// A backend whose `run` judges `candidate`'s and keeps the verdicts, for `evaluate` and everything else that calls ops on a backend.
/// On each thread the youngest judges.
class Judging {
 public:
  /// `device`: calls are copied to that device of the candidate, and back (Placement).
  Judging(const Backend& candidate, const Backend& reference, std::optional<std::int32_t> device = {});
  ~Judging();
  Judging(const Judging&) = delete;
  Judging& operator=(const Judging&) = delete;

  const Backend& backend() const { return backend_; }
  const Backend& candidate() const { return candidate_; }
  const Backend& reference() const { return reference_; }
  const Placement& placement() const { return placement_; }
  /// Each call's verdict gets the classes that this answers, from the call's arguments as they are after it.
  using Classify = std::function<std::vector<std::string>(quire_op, const void* args)>;
  void classify_by(Classify classify) { classify_ = std::move(classify); }
  /// The verdicts of the calls since the last `take`.
  std::vector<CallVerdict> take();

 private:
  static quire_status run(quire_stream* stream, quire_op op, const void* args, void* workspace, std::size_t bytes);
  const Stream* stream();
  static quire_backend_table table_for(const Backend& reference);

  const Backend& candidate_;
  const Backend& reference_;
  Placement placement_;
  quire_backend_table table_;
  Backend backend_;
  Judging* outer_;  // the one this one stands in for, until it ends
  std::vector<CallVerdict> verdicts_;
  std::unique_ptr<Stream> stream_;  // the candidate's
  Classify classify_;
};

}  // namespace quire::conformance
