// A request while it runs.
#pragma once

#include "pages.h"
#include "trace.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace quire::replay {

/// What the layers gave for a request that will be verified: a row of `width` numbers per layer and computed token.
struct Outputs {
  std::vector<std::vector<float>> layers;
  std::vector<std::int64_t> steps;  ///< the step of each token
};

struct Sequence {
  const Request* request = nullptr;
  std::int64_t row = 0;            ///< of the table
  std::int64_t prefix = 0;         ///< tokens that came from the cache
  std::int64_t computed = 0;       ///< tokens whose states and slots are stored, the prefix included
  std::vector<PageId> pages;       ///< by place in the sequence
  std::int64_t whole = 0;          ///< pages that are full and were offered to the cache
  std::uint64_t chain = 0;         ///< the cache's number of the last of them
  std::unique_ptr<Outputs> outputs;

  bool is_decoding() const { return computed >= request->prompt; }
  bool is_done() const { return computed == request->tokens(); }
  std::int64_t left() const { return (is_decoding() ? request->tokens() : request->prompt) - computed; }
};

}  // namespace quire::replay
