// Choosing the next token.
#include "choose.h"

#include <cmath>

namespace quire::story {

Best best_of(const Logits& logits) {
  Best best;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[static_cast<std::size_t>(best.first)])
      best.first = static_cast<Token>(i);
  }
  best.second = best.first == 0 ? 1 : 0;
  bool any_nan = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    any_nan = any_nan || std::isnan(logits[i]);
    if (static_cast<Token>(i) != best.first &&
        logits[i] > logits[static_cast<std::size_t>(best.second)]) {
      best.second = static_cast<Token>(i);
    }
  }
  best.gap = any_nan ? std::nanf("")
                     : logits[static_cast<std::size_t>(best.first)] -
                           logits[static_cast<std::size_t>(best.second)];
  return best;
}

Token Chooser::choose(const Logits& logits, std::int64_t place) const {
  const Best best = best_of(logits);
  if (temperature_ <= 0 || std::isnan(best.gap)) return best.first;
  const double greatest = logits[static_cast<std::size_t>(best.first)];
  std::vector<double> weights;
  double total = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp((logit - greatest) / temperature_));
    total += weights.back();
  }
  const auto number = static_cast<std::uint64_t>(place);
  const auto words =
      philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0},
             seed_);
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32 | words[0]) >> 11;
  double left = std::ldexp(static_cast<double>(bits), -53) * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<Token>(i);
  }
  return best.first;
}

}  // namespace quire::story
