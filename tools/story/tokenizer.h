// The tokenizer: llama2.c's file of scored pieces, byte pair encoding, and the text of a token.
#pragma once

#include "model.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace quire::story {

/// The token that begins every story and, chosen by the model, ends it.
constexpr Token begin_token = 1;

class Tokenizer {
 public:
  /// The bytes of a tokenizer file with `vocabulary` pieces. Raises std::runtime_error, one line,
  /// for any that is not exactly one.
  static Tokenizer parse(std::span<const std::byte> bytes, std::int64_t vocabulary);
  static Tokenizer load(const std::string& path, std::int64_t vocabulary);

  /// The begin token and the text's tokens: characters (or their bytes), merged as long as a merger
  /// of highest score is a piece. Raises std::runtime_error for a text that is sure to have more
  /// than `most` tokens.
  std::vector<Token> encode(std::string_view text, std::int64_t most) const;

  /// The text of `token` after `previous`: no space at a story's begin; a piece "<0xNN>" is that
  /// byte; control characters are left out.
  std::string decode(Token previous, Token token) const;

 private:
  Tokenizer() = default;
  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::unordered_map<std::string, Token> tokens_;
  std::size_t longest_ = 1;
};

}  // namespace quire::story
