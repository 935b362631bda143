// A serving trace in Mooncake's format: when requests came, how long they were and which prefixes they share.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace quire::replay {

/// What a token is: the `offset`-th of a block of the trace, or of a request's own tokens. Equal sources are equal tokens.
struct TokenSource {
  std::int64_t stream = 0;  ///< block id or request number
  std::int64_t offset = 0;
  bool is_own = false;      ///< of the request
};

struct Request {
  std::int64_t number = 0;      ///< place in the trace, from 0
  std::int64_t arrival_ms = 0;
  std::int64_t prompt = 0;      ///< tokens
  std::int64_t output = 0;      ///< tokens
  std::int64_t block_size = 0;  ///< tokens of a block
  std::vector<std::int64_t> blocks;

  /// Tokens that a model computes: the last one that it puts out is never read.
  std::int64_t tokens() const { return prompt + (output > 0 ? output - 1 : 0); }
  TokenSource source(std::int64_t position) const;
};

struct Trace {
  std::vector<Request> requests;
  std::int64_t block_size = 0;  ///< tokens
  std::int64_t tokens() const;
  std::int64_t longest() const;
};

/// Tokens of a block in the format (Qin et al., "Mooncake", FAST 2025).
inline constexpr std::int64_t trace_block_size = 512;

/// `count` requests from number `start` on (all where count is 0), in order of arrival. A scale below 1 shrinks a block from 512 tokens to
/// the multiple of 64 nearest to 512 * scale, at least 64, and with it every length; what is below 1/8 drops blocks. Prefixes are shared
/// as before. Raises invalid_argument naming the file, line and field, or `start` where no request is left.
Trace read_trace(const std::string& path, std::int64_t start, std::int64_t count, double scale);
/// The same of an open stream; `name` stands for the file in errors.
Trace read_trace(std::istream& stream, const std::string& name, std::int64_t start, std::int64_t count, double scale);

}  // namespace quire::replay
