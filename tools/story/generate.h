// Generating: one layout's stories, written token by token and then checked against an evaluation
// of the whole.
#pragma once

#include "choose.h"
#include "layouts.h"
#include "tokenizer.h"

#include <functional>
#include <optional>
#include <string>

namespace quire::story {

struct Generation {
  const Model* model = nullptr;
  const Tokenizer* tokenizer = nullptr;
  On on;
  Chooser chooser{0, 0};
  Tokens prompt;  ///< with the begin token
  std::int64_t tokens =
      0;  ///< that a story is evaluated on, the prompt's included, as many as it then shows
  Fault fault = Fault::none;
  std::int64_t fault_from = 0;
  std::function<void(std::string_view)> print;  ///< gets the first story's text as it grows
  std::function<void(std::int64_t tokens, double seconds)> progress;
  std::function<bool()> interrupted;
};

/// What became of a layout.
struct Outcome {
  std::string layout;
  std::string text;             ///< the first story's, without a newline at its end
  std::vector<Tokens> stories;  ///< the begin token, the prompt, the choices
  Counts counts;
  std::int64_t generated = 0;  ///< tokens chosen, all stories together
  double seconds = 0;
  std::optional<float> smallest_gap;  ///< between the first story's best and second logits; none
                                      ///< where a logit was NaN
  bool interrupted = false;
  /// What a story has other than the evaluation of it whole, or than the other stories, in words;
  /// empty where all agree.
  std::string mismatch;
  std::optional<std::int64_t>
      mismatch_at;  ///< the first token that differs, counted from the begin token

  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(generated) / seconds : 0;
  }
};

Outcome generate(std::string_view layout_name, const Generation& generation);

}  // namespace quire::story
