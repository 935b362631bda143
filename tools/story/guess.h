// Guesses: tokens that may come next, looked up in the story so far.
#pragma once

#include "layouts.h"

namespace quire::story {

/// What followed the latest earlier occurrence of the story's last three, two or one tokens, `most`
/// tokens at most.
Tokens look_up(std::span<const Token> story, std::int64_t most);

/// A token that is neither the given one nor the one that begins a story.
Token other_than(Token token, std::int64_t vocabulary);

}  // namespace quire::story
