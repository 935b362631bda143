// Guesses: prompt look-up, and guesses that are wrong on purpose.
#include "guess.h"

#include "tokenizer.h"

#include <algorithm>

namespace quire::story {

Tokens look_up(std::span<const Token> story, std::int64_t most) {
  for (std::size_t known = 3; known > 0 && most > 0; --known) {
    if (story.size() <= known) continue;
    const auto last = story.end() - static_cast<std::ptrdiff_t>(known);
    const auto found = std::find_end(story.begin(), story.end() - 1, last, story.end());
    if (found == story.end() - 1) continue;
    const auto begin = found + static_cast<std::ptrdiff_t>(known);
    return Tokens(begin, begin + std::min<std::ptrdiff_t>(most, story.end() - begin));
  }
  return {};
}

Token other_than(Token token, std::int64_t vocabulary) {
  const auto count = static_cast<Token>(vocabulary);
  Token other = static_cast<Token>((std::int64_t{token} + 101) % count);
  while (other == token || other == begin_token) other = (other + 1) % count;
  return other;
}

}  // namespace quire::story
