// Choosing the next token: the best one, or at a temperature one drawn with a counter-based
// generator.
#pragma once

#include "model.h"

#include "philox.h"

#include <cstdint>

namespace quire::story {

/// The two best tokens and how far they are apart; NaN where a logit is.
struct Best {
  Token first = 0, second = 0;
  float gap = 0;
};
Best best_of(const Logits& logits);

/// A choice depends on nothing but the logits, the place in the story, the temperature and the
/// seed.
class Chooser {
 public:
  Chooser(double temperature, std::uint64_t seed) : temperature_(temperature), seed_(seed) {}
  Token choose(const Logits& logits, std::int64_t place) const;

 private:
  double temperature_;
  std::uint64_t seed_;
};

}  // namespace quire::story
