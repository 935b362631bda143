// The tokenizer: reading, encoding, decoding.
#include "tokenizer.h"

#include "files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace quire::story {

namespace {

constexpr std::size_t piece_header_bytes = 8;    // score, length
constexpr Token first_byte_token = 3;            // <unk>, <s>, </s> come before the 256 bytes
constexpr std::size_t longest_usual_piece = 64;  // no text is made of longer ones throughout
constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;

void require(bool right, const std::string& problem) {
  if (!right) throw std::runtime_error(problem);
}

template <typename T>
T read(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// "<0xNN>" as its byte.
std::optional<char> raw_byte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

// What a terminal could take for a command is no text.
bool is_text(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte >= 0x20 ? byte != 0x7f : byte >= '\t' && byte <= '\r';
}

// Bytes of the UTF-8 character that begins the text, 1 where it begins none.
std::size_t character_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && size < 4 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80)
    ++size;
  return size;
}

}  // namespace

Tokenizer Tokenizer::parse(std::span<const std::byte> bytes, std::int64_t vocabulary) {
  require(bytes.size() >= 4,
          fmt::format("truncated: {} bytes, no llama2.c tokenizer", bytes.size()));
  const auto longest = read<std::int32_t>(bytes, 0);
  require(longest > 0,
          fmt::format("no llama2.c tokenizer: its longest piece has {} bytes; allowed: 1 or more",
                      longest));
  const std::uint64_t least = 4 + static_cast<std::uint64_t>(vocabulary) * piece_header_bytes;
  require(bytes.size() >= least,
          fmt::format("truncated: {} bytes, the model's {} tokens need {} or more", bytes.size(),
                      vocabulary, least));
  Tokenizer tokenizer;
  std::size_t offset = 4;
  for (Token token = 0; token < vocabulary; ++token) {
    require(bytes.size() - offset >= piece_header_bytes,
            fmt::format("truncated: ends before token {} of {}", token, vocabulary));
    tokenizer.scores_.push_back(read<float>(bytes, offset));
    const auto length = read<std::int32_t>(bytes, offset + 4);
    offset += piece_header_bytes;
    require(length >= 0 && length <= longest,
            fmt::format("token {} has {} bytes; allowed: 0 to {}", token, length, longest));
    const auto size = static_cast<std::size_t>(length);
    require(bytes.size() - offset >= size,
            fmt::format("truncated: ends inside token {} of {}", token, vocabulary));
    tokenizer.pieces_.emplace_back(reinterpret_cast<const char*>(bytes.data()) + offset, size);
    tokenizer.tokens_.emplace(tokenizer.pieces_.back(), token);  // of equal pieces the first
    tokenizer.longest_ = std::max(tokenizer.longest_, size);
    offset += size;
  }
  require(offset == bytes.size(), fmt::format("too long: {} bytes after the model's {} tokens",
                                              bytes.size() - offset, vocabulary));
  return tokenizer;
}

Tokenizer Tokenizer::load(const std::string& path, std::int64_t vocabulary) {
  InputFile file(path, "tokenizer", "give one with --tokenizer");
  if (file.size() > largest_file)
    file.fail(fmt::format("{} bytes, too large for a tokenizer", file.size()));
  const std::vector<std::byte> bytes = file.first(file.size());
  try {
    return parse(bytes, vocabulary);
  } catch (const std::runtime_error& error) {
    file.fail(error.what());
  }
}

std::vector<Token> Tokenizer::encode(std::string_view text, std::int64_t most) const {
  std::vector<Token> tokens{begin_token};
  if (text.empty()) return tokens;
  require(text.size() / std::min(longest_, longest_usual_piece) < static_cast<std::size_t>(most),
          fmt::format("the prompt has {} bytes, more than {} tokens", text.size(), most));
  const auto append = [&](std::string_view character) {
    if (const auto found = tokens_.find(std::string(character)); found != tokens_.end()) {
      tokens.push_back(found->second);
      return;
    }
    for (const char letter : character) {
      const Token token = first_byte_token + static_cast<unsigned char>(letter);
      tokens.push_back(token < static_cast<Token>(pieces_.size()) ? token : 0);
    }
  };
  append(" ");
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    append(text.substr(0, size));
    text.remove_prefix(size);
  }
  while (true) {
    std::optional<std::size_t> best;
    Token merged = 0;
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
      const auto found = tokens_.find(pieces_[static_cast<std::size_t>(tokens[i])] +
                                      pieces_[static_cast<std::size_t>(tokens[i + 1])]);
      if (found == tokens_.end()) continue;
      if (!best || scores_[static_cast<std::size_t>(found->second)] >
                       scores_[static_cast<std::size_t>(merged)]) {
        best = i;
        merged = found->second;
      }
    }
    if (!best) return tokens;
    tokens[*best] = merged;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
}

std::string Tokenizer::decode(Token previous, Token token) const {
  std::string_view piece = pieces_[static_cast<std::size_t>(token)];
  if (previous == begin_token && piece.starts_with(' ')) piece.remove_prefix(1);
  std::string text;
  if (const std::optional<char> byte = raw_byte(piece)) {
    text.push_back(*byte);
  } else {
    text = piece;
  }
  std::erase_if(text, [](char letter) { return !is_text(letter); });
  return text;
}

}  // namespace quire::story
