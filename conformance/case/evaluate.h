// Evaluating a case: reading it, running it, saying what came out and whether its inputs are intact.
#pragma once

#include <quire/ops.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace quire::conformance {

struct EvaluateOptions {
  On on;
  std::filesystem::path folder;  ///< side files of a case are named relative to it
  /// Takes a result tensor away to a side file and answers what the result says instead ({"file":...,"key":...}); empty: tensors stand in the result.
  std::function<nlohmann::json(const std::string& name, const Tensor& tensor)> divert;
};

struct Evaluated {
  std::string text;  ///< one line of JSON: a result, or the list of a program's results
  bool ok = true;    ///< false when a call is in error, an input is not intact or `expect` is not met
};

/// One case or program of the case format. Raises nothing but std::bad_alloc.
Evaluated evaluate(const nlohmann::json& test_case, const EvaluateOptions& options);

}  // namespace quire::conformance
