// Cases on a candidate, judged beside the reference.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "case/evaluate.h"
#include "judge/judge_call.h"

namespace quire::conformance {

/// The verdicts of a case's or program's calls. Raises std::logic_error where the case itself is wrong.
inline std::vector<CallVerdict> judged(const nlohmann::json& test_case, const Backend& candidate) {
  Judging judging(candidate, backend("reference"));
  const Evaluated evaluated = evaluate(test_case, {{&judging.backend(), nullptr}, {}, {}});
  if (!evaluated.ok) throw std::logic_error(evaluated.text);
  return judging.take();
}

/// The last call's: a paged op is several.
inline CallVerdict judged_one(const nlohmann::json& test_case, const Backend& candidate) {
  std::vector<CallVerdict> verdicts = judged(test_case, candidate);
  if (verdicts.empty()) throw std::logic_error("no call was judged");
  return std::move(verdicts.back());
}

}  // namespace quire::conformance
