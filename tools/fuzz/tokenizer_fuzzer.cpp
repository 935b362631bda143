// Fuzzing the tokenizer: any bytes are one or give one error line, and one that is read encodes and
// decodes any text.
#include "story/tokenizer.h"

#include <cstdint>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// The first two bytes say how many tokens there should be and how long a text is cut off the end.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::int64_t vocabulary = 3 + data[0];
  const std::size_t text_size = std::min<std::size_t>(data[1], size - 2);
  const auto file = std::as_bytes(std::span(data + 2, size - 2 - text_size));
  const std::string_view text(reinterpret_cast<const char*>(data) + size - text_size, text_size);
  try {
    const auto tokenizer = quire::story::Tokenizer::parse(file, vocabulary);
    quire::story::Token previous = quire::story::begin_token;
    for (const quire::story::Token token : tokenizer.encode(text, 256)) {
      if (token < 0 || token >= vocabulary) __builtin_trap();
      tokenizer.decode(previous, token);
      previous = token;
    }
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) __builtin_trap();
  }
  return 0;
}
