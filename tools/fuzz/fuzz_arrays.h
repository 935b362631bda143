// What the fuzzers of array files share: a memory limit, and readers that may only raise Error.
#pragma once

#include "arrays/bytes.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace quire::arrays::fuzz {

/// The input in memory of its own; the limit keeps a file that decompresses well from taking it
/// all.
inline Bytes input(const std::uint8_t* data, std::size_t size) {
  static const int limited = ::setenv("QUIRE_MAX_MEMORY", "64M", 1);
  if (limited != 0) std::abort();
  return std::as_bytes(std::span(data, size));
}

/// What `read` returns, or nothing where it raised Error.
template <typename Read>
auto attempt(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    // One line that names the argument, whatever the file holds.
    if (error.argument().empty() ||
        std::string_view(error.what()).find('\n') != std::string_view::npos)
      std::abort();
    return std::nullopt;
  }
}

inline void require_same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || !a.is_dense() || !b.is_dense())
    std::abort();
  if (!std::ranges::equal(bytes_of(a), bytes_of(b))) std::abort();
}

}  // namespace quire::arrays::fuzz
